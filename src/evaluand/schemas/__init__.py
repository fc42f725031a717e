"""The schemas that have names; `evaluand.schema.find` finds them."""
