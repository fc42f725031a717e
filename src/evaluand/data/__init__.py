"""What is evaluated on: datasets, sources, roles, views, splits, schemas and adapters."""
