build/net.o: net.c common.h net.h
common.h:
net.h:
