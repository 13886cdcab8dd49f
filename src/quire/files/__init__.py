"""Files and directories that are there whole or not at all, and that never cost anything else that is there."""
