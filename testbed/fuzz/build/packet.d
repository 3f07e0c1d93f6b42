build/packet.o: packet.c wire.h common.h net.h
wire.h:
common.h:
net.h:
