"""The kinds of adapters, one file each; found by name through the entry points `evaluand.adapters`."""
