"""`dyff.schema.pydantic`: the base class of schemas, under the name in Dyff's documentation."""

from evaluand.interop.dyff.base import DyffSchemaBaseModel as DyffSchemaBaseModel
