"""Apps: Frameworks."""
