"""Kinds of task."""
