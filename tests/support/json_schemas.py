"""`jsonschema` without its grammar of international addresses: that takes a second to load, and no test needs it."""

import sys

sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
import jsonschema as jsonschema  # noqa: E402

del sys.modules["rfc3987_syntax"]
