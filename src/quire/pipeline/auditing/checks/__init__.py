"""The audit's checks: one module for each check, or for a few that share a kernel. The registry lists them."""
