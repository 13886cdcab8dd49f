"""Group protocol for distributed objects that call each other: only conflicting calls are ordered. See `node`."""
