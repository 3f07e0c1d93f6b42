build/local.o: local.c common.h net.h watch.h
common.h:
net.h:
watch.h:
