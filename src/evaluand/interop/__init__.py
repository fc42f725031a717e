"""Names and files of other systems, over the core. Nothing is computed here."""
