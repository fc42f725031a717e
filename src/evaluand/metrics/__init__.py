"""The kinds of metric, one file each; found by name through the entry points `evaluand.metrics`."""
