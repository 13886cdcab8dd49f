"""Small wrong rules in the sources, each of which a named test must catch: `make mutants` plants them one by one."""
