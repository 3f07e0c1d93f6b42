build/watch.o: watch.c common.h watch.h
common.h:
watch.h:
