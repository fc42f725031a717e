"""Texts: their language, their sentences, and search in them."""
