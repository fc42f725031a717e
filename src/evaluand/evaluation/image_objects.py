"""Reads the cells of an object in an image, as detection and segmentation have them; a DataError names a wrong one."""

from typing import Any

from evaluand.core.errors import DataError, described
from evaluand.metrics.detection.masks import read_mask


def read_label(what: str, value: Any) -> str | int | None:
    """The label of an object; None if it has none.

    Example:
        >>> read_label("expected box 0", "cat")
        'cat'
    """
    if value is not None and (not isinstance(value, str | int) or isinstance(value, bool)):
        raise DataError(f"{what}: label is {described(value)}, not text or an integer")
    return value


def read_flag(what: str, value: Any) -> bool | None:
    """A mark: true or false, or 1 or 0; None if the object has none."""
    if value is not None and value not in (0, 1):
        raise DataError(f"{what} is {described(value)}, not true or false")
    return None if value is None else bool(value)


def read_object_mask(what: str, value: Any) -> dict[str, Any]:
    """The run lengths of the mask of an object."""
    try:
        return read_mask(value)
    except DataError as error:
        raise DataError(f"{what}: mask: {error}") from None
