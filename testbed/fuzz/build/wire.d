build/wire.o: wire.c watch.h wire.h common.h net.h
watch.h:
wire.h:
common.h:
net.h:
