"""The names and files of D3M's problem schema, over the core."""
