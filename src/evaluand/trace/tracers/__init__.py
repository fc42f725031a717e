"""Tracers: where spans are told to, one kind per file."""
