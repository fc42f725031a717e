"""`dyff.schema.classification`."""

from evaluand.data.schema.named.classification import Label as Label
