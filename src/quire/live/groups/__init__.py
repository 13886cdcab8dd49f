"""Live groups with fixed members: the application's API, and the driver that runs a protocol on a mesh of links."""
