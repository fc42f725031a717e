"""What a fingerprint says of code, which can be read without the machinery that computes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluand.core.fingerprint.outside import shared_generators_of
from evaluand.core.system import working_folder


@dataclass(frozen=True)
class CodeFacts:
    """What is known of some code for observing what its calls read.

    Attributes:
        folder: where the code lies; the current directory where it has no file.
        libraries: the packages and modules of others that it uses.
        keeps: whether it may keep something that a later call finds.
        is_versioned: whether a declared version stands for the services and programs that it uses.
        modules: what it consists of, and libraries that keep what they read: it may find there what calls of other
            code of these modules have read. None where it may share any.
    """

    folder: str = field(default_factory=working_folder)
    libraries: frozenset[str] = frozenset(("?",))  # one that is not known
    keeps: bool = True
    is_versioned: bool = False
    modules: frozenset[str] | None = None

    @property
    def draws(self) -> frozenset[str]:
        """The modules from whose shared generators the code of others may draw; a version stands for what is drawn."""
        libraries = () if self.is_versioned else self.libraries
        return frozenset[str]().union(*map(shared_generators_of, libraries))

    def __fingerprint__(self) -> Any:
        """Nothing: facts follow from code that is identified itself."""
        return ()

    @staticmethod
    def combine(parts: Iterable[CodeFacts | None]) -> CodeFacts | None:
        """What is known of code made of several parts; None if no part is observed."""
        observed = [part for part in parts if part is not None]
        if not observed:
            return None
        libraries = frozenset[str]().union(*(part.libraries for part in observed))
        modules = [part.modules for part in observed if part.modules is not None]
        shares_any = len(modules) < len(observed)
        return CodeFacts(
            observed[0].folder,
            libraries,
            any(part.keeps for part in observed),
            all(part.is_versioned for part in observed),
            None if shares_any else frozenset[str]().union(*modules),
        )


@dataclass(frozen=True)
class Fingerprint:
    """What a function or object is, as far as its results are concerned.

    Attributes:
        digest: the digest of everything reached, as 32 hexadecimal digits.
        pinned: whether everything reached could be read.
        unpinned: why not, one sentence for each thing that could not.
        parts: qualified name → digest of every function, class and constant reached, for explaining changes.
        files: path → digest of the content of every declared file.
        facts: what observing its calls needs to know of it.
    """

    digest: str
    pinned: bool
    unpinned: tuple[str, ...]
    parts: Mapping[str, str]
    files: Mapping[str, str]
    facts: CodeFacts = field(compare=False, repr=False, default=CodeFacts())
