"""Files of text, and files that are replaced as a whole."""
