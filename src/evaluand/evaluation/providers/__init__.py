"""Kinds of providers, one file each: what judges texts here, without a key or a network."""
