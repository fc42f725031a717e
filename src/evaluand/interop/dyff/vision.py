"""`dyff.schema.vision`."""

from evaluand.data.schema.named.vision import Image as Image
