"""Credentials that code has read from the environment: a fingerprint covers that they are there, not their values.

So it is the same for users with different keys, and no key can be guessed from the digest of a part.
"""

from __future__ import annotations

import os
from typing import Any

from evaluand.core.redaction import is_secret, variable_values


class EnvironmentSecrets:
    """The credentials in the environment at the time of one traversal."""

    def __init__(self) -> None:
        self._values = variable_values()
        self._environment = frozenset(filter(None, os.environ.values()))

    def hide(self, value: Any) -> Any:
        """A text with the names of variables in place of credentials; anything else as it is."""
        if isinstance(value, str):
            for secret, shown in self._values.items():
                if secret in value:
                    value = value.replace(secret, shown)
        return value

    def occur_in(self, text: str) -> bool:
        """Whether a text in the form of Python's literals may hold a credential."""
        forms = (form for value in self._values for form in (value, ascii(value)[1:-1], value.replace("'", "\\'")))
        return any(form in text for form in forms)

    def hide_named(self, name: str, value: Any) -> Any:
        """A placeholder for the value of any variable, however short, under a name that means a credential."""
        if isinstance(value, str) and is_secret(name, strict=True) and value in self._environment:
            return "${}"
        return value
