build/common.o: common.c common.h
common.h:
