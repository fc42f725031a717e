"""The fields that evaluation itself needs, the names reserved for them, and the ids derived from others.

A name that begins and ends with an underscore, and one in the namespace `dyff.io` or below it, means the same thing in
every schema. So what a reserved name may mean is listed here, and a schema of a user's own has no others.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from typing import Final

from evaluand.core.errors import SpecError
from evaluand.core.key_columns import RESPONSE_INDEX
from evaluand.data.schema.kinds import RANGES, Array, Field, Scalar, StructType

INDEX: Final = "_index_"
REPLICATION: Final = "_replication_"
RESPONSES: Final = "responses"

DEFINED: Final = (INDEX, REPLICATION, RESPONSE_INDEX, "text.dyff.io/taggedspan")
"""The reserved names that have a meaning, and may be used for it."""

_RESERVED = re.compile(r"_.*_|([a-z0-9-]+\.)*dyff\.io(/.*)?", re.IGNORECASE | re.DOTALL)

INDEX_FIELD: Final = Field(INDEX, Scalar("int64", minimum=0), doc="The index of the item in the dataset")
REPLICATION_FIELD: Final = Field(REPLICATION, Scalar("string"), doc="ID of the replication the response belongs to.")
RESPONSE_INDEX_FIELD: Final = Field(
    RESPONSE_INDEX,
    Scalar("int64", minimum=0),
    doc="The index of the response among responses to the corresponding _index_",
)


def responses_field(item: StructType) -> Field:
    """The list of responses, each of which is an `item`."""
    return Field(RESPONSES, Array(item), doc="Inference responses")


def is_reserved(name: str) -> bool:
    """Whether a name is kept for evaluation itself.

    Example:
        >>> [is_reserved(name) for name in ("_index_", "text.dyff.io/span", "dyff.io", "text", "_private", "x.io/y")]
        [True, True, True, False, False, False]
    """
    return bool(_RESERVED.fullmatch(name))


def identifies(record: StructType) -> bool:
    """Whether `_index_` alone tells the rows apart: in a dataset, but not in what is made of it, where an example has a
    row for each replication or response.
    """
    kinds = {each.name: each.type for each in record.fields}
    index = kinds.get(INDEX)
    return isinstance(index, Scalar) and index.kind in RANGES and not kinds.keys() & _REPEATED


_REPEATED: Final = {REPLICATION, RESPONSE_INDEX, "replication"}
"""By which an example has several rows; the last is what the tables of the path have."""


def check_names(names: Iterable[tuple[str, str]], where: str) -> None:
    """Refuses reserved names that mean nothing.

    Args:
        names: the path of each field and its name, as `arrow.field_names` tells them.
        where: what has these fields.

    Raises:
        SpecError: names all of them.
    """
    wrong = [
        f"{where}: {path}: the field name {name!r} is reserved (_…_, dyff.io/… and *.dyff.io/… are); give it another"
        for path, name in names
        if is_reserved(name) and name not in DEFINED
    ]
    if wrong:
        raise SpecError("\n".join(wrong))


class IdError(SpecError, ValueError):
    """An id cannot be made of what was given."""


class WrongIdType(IdError, TypeError):
    """An id is to be made of what is no text."""


def replication_id(evaluation: str, replication: int) -> str:
    """The id of a repeat, derived from that of the evaluation (UUIDv5, RFC 9562).

    Example:
        >>> replication_id("00000000000000000000000000000000", 0)
        'b6c5448938a05f50a60afd8d76219cae'
    """
    return namespaced_id(evaluation, str(replication))


def namespaced_id(namespace: str, name: str) -> str:
    """The id of something that is named within something else (UUIDv5).

    Raises:
        IdError: the namespace is no UUID, or the name no text.
    """
    for what, given in (("id", namespace), ("name", name)):
        if not isinstance(given, str):
            raise WrongIdType(f"{given!r} is no {what}; give a text")
    try:
        within = uuid.UUID(namespace)
    except ValueError:
        raise IdError(f"{namespace!r} is no id; give the 32 hexadecimal digits of a UUID") from None
    try:
        return uuid.uuid5(within, name).hex
    except UnicodeEncodeError:
        raise IdError(f"{name!r} is no name: it holds half a character") from None


def generate_entity_id() -> str:
    """A new id, by chance (UUIDv4)."""
    return uuid.uuid4().hex


def null_id() -> str:
    """The id of nothing: 32 zeros."""
    return uuid.UUID(int=0).hex
