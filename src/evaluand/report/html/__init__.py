"""Report: Html."""
