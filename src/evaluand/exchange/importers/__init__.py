"""Importers of other tools' results: one module per format, found through the entry points `evaluand.importers`."""
