"""The kinds of engines."""
