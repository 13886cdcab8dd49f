"""A member of a group, as an application holds it: a protocol on a mesh of links."""
