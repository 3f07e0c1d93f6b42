build/peer.o: peer.c wire.h common.h net.h
wire.h:
common.h:
net.h:
