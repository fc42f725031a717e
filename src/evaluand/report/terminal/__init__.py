"""Report: Terminal."""
