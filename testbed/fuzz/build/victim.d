build/victim.o: victim.c wire.h common.h net.h
wire.h:
common.h:
net.h:
