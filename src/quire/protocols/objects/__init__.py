"""Objects that call each other: only calls that conflict are ordered. See `node`."""
