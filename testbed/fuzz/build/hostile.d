build/hostile.o: hostile.c wire.h common.h net.h
wire.h:
common.h:
net.h:
