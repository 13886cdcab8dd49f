"""A sequencing service on real sockets that survives its processes: its register is a replicated object among them."""
