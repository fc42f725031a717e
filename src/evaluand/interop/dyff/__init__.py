"""The names of the Dyff platform, `dyff.schema.…`, over the schemas and adapters of evaluand."""
