"""Kinds of store."""
