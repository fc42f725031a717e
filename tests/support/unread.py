"""State that no fingerprint reads, as that of a service: tests change it, and code that asks for it is the same."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Unread(Generic[T]):
    """Holds a value that may change while the code that reads it stays what it is."""

    def __init__(self, value: T) -> None:
        self.value = value

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("this is the state of a service")
