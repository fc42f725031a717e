"""Kinds of artifacts: what a store, and everything that lists, shows, writes or checks artifacts, knows of each.

A room registers its kinds, in its module `kind`, under the entry points `evaluand.kinds`; a program registers one with
`register`. Nothing else has to know a kind, unless it is about that kind.

The digest of a manifest finds damage, but whoever makes a store can write a digest that matches any content. So a
manifest is compared with the shape of its kind whenever it is read, and readers need not doubt it again. Parts that
only the code of a kind understands (the identity of a task, of a scorer, the parameters of a metric) are objects here,
and that code refuses what it cannot use. Further keys are allowed: other versions may write them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from pkgutil import resolve_name
from typing import Any, Final, NamedTuple

from evaluand.core import registry
from evaluand.core.errors import EngineError, SpecError, describe_error, kind_of, singular as singular_of, warn
from evaluand.store import checks
from evaluand.store.checks import Check, or_null


class Origin(NamedTuple):
    """An artifact that another was made from.

    Attributes:
        digest: that it had then; None if the manifest does not say.
    """

    kind: str
    id: Any
    digest: str | None = None


@dataclass(frozen=True)
class Page:
    """The page of a kind in `evaluand view`.

    Args:
        title: its word in the list.
        routes: status (`sealed`, `open`) → the first part of the address of such an artifact.
        served: the statuses whose pages only a server has, not files.
    """

    title: str = ""
    routes: Mapping[str, str] = field(default_factory=dict)
    served: Sequence[str] = ()


def list_origins(kind: str, ids: Any, digests: Sequence[str] | None = None) -> list[Origin]:
    """The artifacts of a kind that a manifest lists, with the digests that it lists beside them."""
    if not isinstance(ids, list):
        return [Origin(kind, None)]
    return [Origin(kind, id, digest) for id, digest in zip_longest(ids, (digests or [])[: len(ids)])]


def _no_origins(spec: Mapping[str, Any], provenance: Mapping[str, Any]) -> list[Origin]:
    return []


def _nothing_more(manifest: Mapping[str, Any], sealed: bool) -> str:
    return ""


@dataclass(frozen=True)
class Kind:
    """A kind of artifact.

    Args:
        name: its plural, which is also the folder of a store that has them.
        rank: a name of several kinds means the one with the lowest.
        spec: checks what was asked.
        provenance: checks where it came from; see `provenance`.
        view: how it is opened, checked, shown and written: a `KindView`, its class, or `module:name` of that.
        singular: its word in sentences, if that is not `name` without its last letter.
        made_from: the kinds of what it is made from; of those in rooms above, they say so with `made_into`.
        made_into: the kinds in rooms below that are made of it as well.
        origins: spec and provenance → what it was made from, which the provenance may not say.
        stated: key of the spec → that of the provenance with the same ids; stores of formats 1 and 2 lack the former.
        found_by: the keys of the spec whose values `Store.find` finds it by.
        is_found_by_id: what is made of it states its id, not its digest.
        counts: checks the number of rows.
        keys: further keys of its manifests that are required.
        optional: further keys that may be missing.
        agree: manifest, and whether it is sealed → what does not match within it.
        named_by_manifest: a name that only its manifest has counts, where nothing else matches.
        row: what a finished row of it is, if making it again costs calls.
        answers: how the names of the tables begin that have these rows.
        restart: how to begin its work anew.
        page: its page in `evaluand view`; without one, the list there says how to show it in a terminal.

    Example:
        >>> NOTES = Kind("notes", 99, checks.object_of({"text": checks.text}), provenance(), view="")
        >>> head = {"attempt": 0, "created": "2026-01-01", "name": None}
        >>> NOTES.check(head | {"spec": {}, "provenance": {}}, sealed=False)
        'spec.text: is missing'
    """

    name: str
    rank: int
    spec: Check
    provenance: Check
    view: Any
    singular: str = ""
    made_from: Sequence[str] = ()
    made_into: Sequence[str] = ()
    origins: Callable[[Mapping[str, Any], Mapping[str, Any]], list[Origin]] = _no_origins
    stated: Mapping[str, str] = field(default_factory=dict)
    found_by: Sequence[str] = ()
    is_found_by_id: bool = False
    counts: Check = checks.COUNTS
    keys: dict[str, Check] = field(default_factory=dict)
    optional: dict[str, Check] = field(default_factory=dict)
    agree: Callable[[Mapping[str, Any], bool], str] = _nothing_more
    named_by_manifest: bool = False
    row: str = ""
    answers: str = ""
    restart: str = "start it again with `evaluand run`"
    page: Page = Page()

    def __post_init__(self) -> None:
        object.__setattr__(self, "singular", self.singular or singular_of(self.name))

    def check(self, manifest: Mapping[str, Any], *, sealed: bool) -> str:
        """Where a manifest is not one of this kind, and why, such as `spec.labels[0]: expected a text, found null`."""
        shape = self._sealed if sealed else self._open
        return (shape(manifest) or self._contradiction(manifest) or self.agree(manifest, sealed)).removeprefix(".")

    def _contradiction(self, manifest: Mapping[str, Any]) -> str:
        spec, made_from = manifest["spec"], manifest["provenance"]
        wrong = (name for name, made in self.stated.items() if spec.get(name, made_from[made]) != made_from[made])
        return next((f".spec.{name}: differs from provenance.{self.stated[name]}" for name in wrong), "")

    @cached_property
    def _open(self) -> Check:
        return checks.object_of(self._required, _OPTIONAL | self.optional)

    @cached_property
    def _sealed(self) -> Check:
        required = self._required | {"digest": checks.short_text, "counts": self.counts, "tables": _TABLES}
        return checks.object_of(required, _OPTIONAL | self.optional)

    @property
    def _required(self) -> dict[str, Check]:
        head = {"attempt": checks.count, "created": checks.time, "name": or_null(checks.short_text)}
        return head | {"spec": self.spec, "provenance": self.provenance} | self.keys

    @cached_property
    def shown(self) -> Any:
        """The `KindView` of this kind."""
        view = resolve_name(self.view) if isinstance(self.view, str) else self.view
        return view() if isinstance(view, type) else view


class UnknownKind(EngineError):
    """What is stored is of a kind that no installed package registers; nothing is wrong with it."""


INSTALL: Final = "install the package that stored it"
GROUP: Final = "kinds"
_registered: dict[str, Kind] = {}


def register(kind: Kind) -> Kind:
    """Makes a kind known in this process.

    Raises:
        SpecError: another kind has its name.
    """
    if _known().setdefault(kind.name, kind) is not kind:
        raise SpecError(f"there is a kind of artifacts called {kind.name!r}; give this one another name")
    return kind


def _known() -> dict[str, Kind]:
    if not _registered:
        found = [kind for name in registry.names(GROUP) if (kind := _load(name))]
        _registered.update({kind.name: kind for kind in found})  # at once: other threads may be reading
    return _registered


def _load(name: str) -> Kind | None:
    """The kind of an entry point; None if its package is broken, so that what it stored stays as it is."""
    try:
        kind = registry.find(GROUP, name)
    except Exception as error:  # whatever the package raises when it is imported
        why = describe_error(error)
    else:
        if isinstance(kind, Kind):
            return kind
        why = f"it is {kind_of(kind)}, not a Kind"
    warn(f"the kind of artifacts {name!r} cannot be used: {why}; mend or uninstall the package that registers it")
    return None


def kinds() -> list[Kind]:
    """All kinds, by rank."""
    return sorted(_known().values(), key=lambda kind: kind.rank)


def kind_names() -> list[str]:
    """The names of all kinds, by rank."""
    return [kind.name for kind in kinds()]


def find_kind(name: str) -> Kind:
    """The kind with a name.

    Raises:
        UnknownKind: no kind has this name.
    """
    if name not in _known():
        raise UnknownKind(f"{name!r} is not a kind of artifact; {INSTALL}")
    return _known()[name]


def singular(kind: str) -> str:
    """The word for one artifact of a kind.

    Example:
        >>> singular("matches"), singular("runs")
        ('set of matches', 'run')
    """
    return find_kind(kind).singular


def origins_last() -> list[str]:
    """The kinds in an order in which all that an artifact was made from comes after it."""
    left, ordered = kind_names()[::-1], list[str]()
    while left:
        unused = [name for name in left if not set(made_of(name)) & set(left)] or left  # in a circle all at once
        ordered += unused
        left = [name for name in left if name not in unused]
    return ordered


def made_of(name: str) -> list[str]:
    """The kinds that are made of artifacts of a kind, by rank.

    Example:
        >>> made_of("evaluations")
        ['aggregations', 'comparisons', 'cards']
    """
    return [kind.name for kind in kinds() if name in kind.made_from or kind.name in find_kind(name).made_into]


def require_shape(manifest: Mapping[str, Any], *, sealed: bool) -> None:
    """Refuses a manifest that readers would refuse, before it is written.

    Args:
        manifest: as readers parse it: without tuples, arrays and enums.

    Raises:
        SpecError: what was passed to evaluand has another type than readers expect, with its JSON path.
        EngineError: the same of a part that evaluand has made.
    """
    kind = find_kind(manifest["kind"])
    if reason := kind.check(manifest, sealed=sealed):
        message = f"the {kind.singular} cannot be stored: {reason}"
        raise (SpecError if reason.startswith(_FROM_CALLERS) else EngineError)(message)


_FROM_CALLERS: Final = ("name", "spec", "provenance", "app", "work")


def origins(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The (kind, id) of each artifact that an artifact was made from.

    Raises:
        EngineError: the manifest does not say.

    Example:
        >>> list(origins({"kind": "runs", "spec": {"dataset": "3f2a"}}))
        [('datasets', '3f2a')]
    """
    for origin in origins_with_digests(manifest):
        yield origin[:2]


def origins_with_digests(manifest: Mapping[str, Any]) -> list[Origin]:
    """The artifacts that an artifact was made from, with the digests that they had.

    Raises:
        EngineError: the manifest does not say.
    """
    found = find_kind(manifest["kind"]).origins(manifest["spec"], manifest.get("provenance") or {})
    if not all(isinstance(origin.id, str) for origin in found):
        raise EngineError(f"the manifest of {manifest['kind']} {manifest.get('id')} does not say what it was made from")
    return found


def found_by(manifest: Mapping[str, Any]) -> list[str]:
    """By what an artifact is found: its works, its dataset, and the digests of what it was made from.

    All of it is part of what was asked, which the artifact's id stands for.

    Example:
        >>> found_by({"kind": "runs", "work": ["9c1f"], "spec": {"dataset": "3f2a"}})
        ['9c1f', '3f2a']
    """
    spec, found = manifest["spec"], [*manifest.get("work", ())]
    for name in find_kind(manifest["kind"]).found_by:
        digests = spec.get(name)
        found += digests if isinstance(digests, list) else [digests]
    return [*dict.fromkeys(text for text in found if isinstance(text, str))]


# What manifests of several kinds have


def _works(value: Any) -> str:
    is_long = type(value) is list and len(value) > _MOST_WORKS
    return f": expected at most {_MOST_WORKS:,} entries, found {len(value):,}" if is_long else checks.IDS(value)


_MOST_WORKS: Final = 10_000  # one for each scorer; the catalog keeps them
APP: Final = checks.object_of({}, {"name": or_null(checks.text), "version": or_null(checks.scalar)})
METRIC: Final = checks.object_of({"kind": checks.text, "parameters": checks.OBJECT})
_TABLES: Final = checks.map_of(
    checks.object_of({"file": checks.text, "digest": checks.id_, "rows": checks.count, "bytes": checks.count})
)
_OPTIONAL: Final = {"work": _works, "observed": checks.flag, "app": APP, "sealed": checks.time}
AMOUNTS: Final = checks.map_of(checks.number)
USAGE: Final = checks.object_of(
    {"cost": AMOUNTS}, dict.fromkeys(("rows", "requests", "input_tokens", "output_tokens"), checks.count)
)
KEPT: Final = checks.list_of(
    checks.object_of(
        {"what": checks.text, "from": checks.IDS, "changes": checks.TEXTS, "kept": checks.count, "of": checks.count}
    )
)
"""What was taken over from before a change of code: from which artifacts, what changed, how many of how many."""

WORK: Final[dict[str, Check]] = {"pinned": checks.flag, "fresh": checks.flag}
"""The keys of the manifest of work: whether it is reused, and whether it was asked for afresh."""


_DEFAULTED: Final = checks.object_of({"rows": checks.count, "of": checks.count, "reasons": checks.COUNTS})
_FACTS: Final[dict[str, Check]] = {
    "evaluand": or_null(checks.text),
    "python": or_null(checks.text),
    "platform": or_null(checks.text),
    "packages": or_null(checks.map_of(or_null(checks.text))),
    "git": or_null(checks.object_of({}, {"commit": or_null(checks.text), "changed": or_null(checks.flag)})),
    "origin": or_null(checks.OBJECT),
    "parts": or_null(checks.OBJECT),
    "policy": or_null(checks.map_of(or_null(checks.scalar))),
    "task": checks.text,
    "unpinned": or_null(checks.TEXTS),
    "covered": or_null(checks.TEXTS),
    "before": or_null(checks.id_),
    "defaulted": or_null(_DEFAULTED),
    "ranges": checks.RANGES,
    "source": or_null(checks.text),
}


def provenance(required: Mapping[str, Check] | None = None, optional: Mapping[str, Check] | None = None) -> Check:
    """A check of where an artifact came from: the facts that any may have, and those of its kind."""
    return checks.object_of(required or {}, _FACTS | {**(optional or {})})
