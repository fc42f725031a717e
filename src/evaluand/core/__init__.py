"""Ground that knows no step: errors, identity of values and code, registry, selectors, redaction, text files."""
