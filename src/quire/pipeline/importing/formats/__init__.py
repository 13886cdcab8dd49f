"""The import formats, one module each; `contract` is their common interface, and `registry` lists them."""
