"""Formats of other tools in which results are written: one module each, found through `evaluand.exporters`."""
