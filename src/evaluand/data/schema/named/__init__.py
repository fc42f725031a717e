"""Named schemas, found by `evaluand.data.schema.find`."""
