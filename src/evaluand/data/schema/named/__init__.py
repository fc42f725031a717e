"""The schemas that have names; `evaluand.data.schema.find` finds them."""
