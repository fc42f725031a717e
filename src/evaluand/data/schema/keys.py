"""The fields that evaluation itself needs, the names reserved for them, and derived ids.

Names that begin and end with an underscore, and names in the namespace `dyff.io` or below it, mean the same in every
schema. The usable ones are listed here; a user's schema may contain no other reserved name.
"""

import re
import uuid
from collections.abc import Iterable
from typing import Final

from evaluand.core.errors import SpecError
from evaluand.core.json_like import surrogate_fault
from evaluand.core.key_columns import RESPONSE_INDEX
from evaluand.data.schema.kinds import RANGES, Field, Scalar, StructType

INDEX: Final = "_index_"
REPLICATION: Final = "_replication_"
RESPONSES: Final = "responses"

DEFINED: Final = (INDEX, REPLICATION, RESPONSE_INDEX, "text.dyff.io/taggedspan")
"""The reserved names that have a meaning and may be used for it."""

_RESERVED = re.compile(r"_.*_|([a-z0-9-]+\.)*dyff\.io(/.*)?", re.IGNORECASE | re.DOTALL)

INDEX_FIELD: Final = Field(INDEX, Scalar("int64", minimum=0), doc="The index of the item in the dataset")
REPLICATION_FIELD: Final = Field(REPLICATION, Scalar("string"), doc="ID of the replication the response belongs to.")
RESPONSE_INDEX_FIELD: Final = Field(
    RESPONSE_INDEX,
    Scalar("int64", minimum=0),
    doc="The index of the response among responses to the corresponding _index_",
)


def is_reserved(name: str) -> bool:
    """Whether a name is reserved for evaluation itself.

    Example:
        >>> [is_reserved(name) for name in ("_index_", "text.dyff.io/span", "dyff.io", "text", "_private", "x.io/y")]
        [True, True, True, False, False, False]
    """
    return bool(_RESERVED.fullmatch(name))


def index_is_unique(struct: StructType) -> bool:
    """Whether `_index_` alone identifies a row. It does in a dataset, but not in tables derived from one, where an
    example has a row per replication or response.
    """
    kinds = {each.name: each.type for each in struct.fields}
    index = kinds.get(INDEX)
    return isinstance(index, Scalar) and index.kind in RANGES and not kinds.keys() & _REPEATED


_REPEATED: Final = {REPLICATION, RESPONSE_INDEX, "replication"}
"""Fields that give an example several rows; the last is the one in the tables of runs and evaluations."""


def check_names(names: Iterable[tuple[str, str]], where: str) -> None:
    """Refuse reserved names that have no meaning.

    Args:
        names: the path of each field and its name, as `arrow.field_names` yields them.
        where: the schema, for messages.
    """
    faults = [
        f"{where}: {path}: the field name {name!r} is reserved (_…_, dyff.io/… and *.dyff.io/… are); give it another"
        for path, name in names
        if is_reserved(name) and name not in DEFINED
    ]
    if faults:
        raise SpecError("\n".join(faults))


class IdError(SpecError, ValueError):
    """An id cannot be derived from these arguments."""


class WrongIdType(IdError, TypeError):
    """An argument of an id is not text."""


def replication_id(evaluation: str, replication: int) -> str:
    """The id of a replication, derived from the id of the evaluation (UUIDv5, RFC 9562).

    Example:
        >>> replication_id("00000000000000000000000000000000", 0)
        'b6c5448938a05f50a60afd8d76219cae'
    """
    return namespaced_id(evaluation, str(replication))


def namespaced_id(namespace: str, name: str) -> str:
    """The id of a name within a namespace (UUIDv5).

    Raises:
        IdError: the namespace is not a UUID, or the name not text.
    """
    for what, value in (("id", namespace), ("name", name)):
        if not isinstance(value, str):
            raise WrongIdType(f"the {what} is {value!r}; give text")
    try:
        parent = uuid.UUID(namespace)
    except ValueError:
        raise IdError(f"{namespace!r} is not an id; give the 32 hexadecimal digits of a UUID") from None
    if fault := surrogate_fault(name):
        raise IdError(f"the name {name!r} {fault}")
    return uuid.uuid5(parent, name).hex


def generate_entity_id() -> str:
    """A new random id (UUIDv4)."""
    return uuid.uuid4().hex


def null_id() -> str:
    """The null id: 32 zeros."""
    return uuid.UUID(int=0).hex
