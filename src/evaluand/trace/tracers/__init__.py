"""Tracers: where spans are recorded, one kind per file."""
