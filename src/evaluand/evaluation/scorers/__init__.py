"""The kinds of scorers, one file each, found by name through the entry points `evaluand.scorers`."""
