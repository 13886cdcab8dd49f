"""The checks of the audit: a module for each, or for a few that share a kernel. The registry lists them."""
