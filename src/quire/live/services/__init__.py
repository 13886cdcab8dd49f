"""Services on real sockets: sequencers and their clients, objects that call each other, replicated stores."""
