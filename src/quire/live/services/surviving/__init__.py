"""A sequencing service on real sockets with failover: its register is an object that is replicated among its processes."""
