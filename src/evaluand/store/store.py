"""The store: kinds, ids, manifests and tables, nothing else.

An artifact is open (its work is in journals) or sealed (it has a manifest and tables); a sealed artifact never changes.
Names are refs to ids. The protocol exposes no paths, so other backends can implement it.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from evaluand.core.errors import (
    EngineError,
    Fault,
    NotFound,
    SpecError,
    nearest,
    plural,
    pluralize,
    warn,
    with_article,
)
from evaluand.core.identity import artifact_id, decode, digest, encode
from evaluand.core.labels import shown_name
from evaluand.core.provenance import UntilOrigin, experiment_origin
from evaluand.store.checks import MOST_NAME
from evaluand.store.journal import MemoryLog, WorkLog
from evaluand.store.kinds import find_kind, found_by, kind_names, kinds, origins, require_shape, singular
from evaluand.store.memory_leases import MemoryLeases, MemoryShards
from evaluand.store.ownership import with_mac
from evaluand.store.segments import list_places

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Indices = np.ndarray[Any, np.dtype[np.int64]]

FORMAT = 3

Manifest = dict[str, Any]
"""Keys: format, kind, id, name, spec, attempt, created, provenance and seal; of work also work, pinned, observed, fresh
and app; sealed also digest, counts, tables and sealed.

`work` lists what identifies the work without its data, so that finished rows are found again."""


class Ref(NamedTuple):
    """A name and the artifact it refers to."""

    name: str
    kind: str
    id: str


class Rows(NamedTuple):
    """Which rows of a table are read; all by default.

    Attributes:
        of: the `_index_` of the examples that are wanted, ascending; further rows may be among those returned, see
            `WindowedStore`.
        at: the places of the rows that are wanted in the table, ascending; no others are returned.
    """

    of: Indices | None = None
    at: Indices | None = None


ALL: Final = Rows()


class Draft(Protocol):
    """The tables of an artifact being written; invisible until sealed."""

    def append(self, table: str, batch: pa.RecordBatch) -> None:
        """Adds rows to a table; the first batch creates it."""

    def seal(self, manifest: Manifest) -> Manifest:
        """Completes the artifact and makes it immutable; the first to seal wins.

        Returns:
            The manifest in the store, with its tables.

        Raises:
            SpecError: the manifest has a value that readers would refuse, with its JSON path.
        """

    def discard(self) -> None:
        """Discards the draft."""


class Store(Protocol):
    """Stores artifacts."""

    def ids(self, kind: str, begin: str = "", *, damaged: bool = False) -> list[str]:
        """The ids of all artifacts of a kind, open ones too, sorted.

        Args:
            begin: only those that begin so.
            damaged: also those whose manifest cannot be read.
        """

    def manifest(self, kind: str, id: str) -> Manifest:
        """The manifest of an artifact, sealed or open (then without `digest`).

        Raises:
            NotFound: the store has no such artifact.
            EngineError: the manifest is damaged.
        """

    def is_sealed(self, kind: str, id: str) -> bool:
        """Whether the artifact exists and is complete."""

    def open(self, manifest: Manifest) -> Manifest:
        """Opens an artifact for work and returns its manifest; one that is already open keeps its first manifest.

        Raises:
            SpecError: the manifest has a value that readers would refuse, with its JSON path.
        """

    def lane(self, kind: str, id: str, name: str, slots: int | None) -> WorkLog:
        """The log of keyed work of an open artifact; it grows if `slots` is None."""

    def draft(self, kind: str, id: str) -> Draft:
        """Begins to write an artifact's tables."""

    def read(
        self, kind: str, id: str, table: str, columns: list[str] | None = None, rows: Rows = ALL
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a sealed artifact's table, in order.

        Raises:
            NotFound: the store has no such artifact or table.
        """

    def damage(self, kind: str, id: str, *, quick: bool = False) -> list[Fault]:
        """The damage of a sealed artifact's tables or of an open one's journal.

        Args:
            quick: compare the sizes of tables alone, and read none; nor the lines of a journal.
        """

    def checks(self, kind: str, id: str) -> dict[str, dict[str, Any]]:
        """The outcomes of checks stored beside an artifact, by what they depend on; damaged ones are left out."""

    def add_check(self, kind: str, id: str, key: str, outcome: Mapping[str, Any]) -> None:
        """Stores the outcome of a check beside an artifact, unless it has one or nothing can be written there.

        Args:
            key: what the outcome depends on: 32 hexadecimal digits.
        """

    def find(self, kind: str, origin: str) -> list[str]:
        """The ids of the artifacts, open ones too, that were made by a work or from an artifact, newest first.

        Args:
            origin: the digest of the work (task or scorers with parameters) or of the artifact; the id of a dataset.
        """

    def refer(self, name: str, kind: str, id: str, about: Mapping[str, Any] = {}) -> None:
        """Makes a name refer to an artifact; a name refers to one artifact of each kind.

        Args:
            about: what belongs to the name, see `about`.
        """

    def about(self, name: str, kind: str) -> Mapping[str, Any]:
        """What belongs to the name of an artifact, which may have several.

        Returns:
            When the name was given (`created`), what the caller knew of the origin of the work under it (`origin`), and
            the name of its dataset (`dataset`); nothing of names that stores of formats 1 and 2 have.
        """

    def refs(self) -> list[Ref]:
        """All names, sorted."""

    def named(self, name: str) -> list[Ref]:
        """What a name refers to: at most one artifact of each kind, without names that are damaged."""

    def damaged_kinds(self, name: str) -> list[str]:
        """The kinds of artifacts for which this name is stored, but cannot be read."""


class MemoryStore:
    """A store that lives and dies with its process."""

    def __init__(self) -> None:
        self._manifests: dict[tuple[str, str], bytes] = {}  # as text, so that stored manifests cannot be changed
        self._tables: dict[tuple[str, str, str], list[pa.RecordBatch]] = {}
        self._lanes: dict[tuple[str, str, str], tuple[MemoryLog, MemoryShards]] = {}
        self._refs: dict[tuple[str, str], Ref] = {}
        self._about: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._checks: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
        self._sealing = threading.Lock()  # of drafts of one artifact, the first that is sealed stays

    def __fingerprint__(self) -> Any:
        """Nothing: where results are kept says nothing of code that refers to it."""
        return ()

    def ids(self, kind: str, begin: str = "", *, damaged: bool = False) -> list[str]:
        return sorted(id for k, id in [*self._manifests] if k == kind and id.startswith(begin))  # a copy: others add

    def manifest(self, kind: str, id: str) -> Manifest:
        if (kind, id) not in self._manifests:
            raise NotFound(f"no {kind} {id} in this store")
        return decode(self._manifests[kind, id])  # type: ignore[no-any-return]

    def is_sealed(self, kind: str, id: str) -> bool:
        return (kind, id) in self._manifests and "digest" in self.manifest(kind, id)

    def open(self, manifest: Manifest) -> Manifest:
        key = manifest["kind"], manifest["id"]
        if key not in self._manifests:
            content = encode(with_seal(manifest | {"format": FORMAT}))
            require_shape(decode(content), sealed=False)
            self._manifests.setdefault(key, content)
        return self.manifest(*key)

    def lane(self, kind: str, id: str, name: str, slots: int | None) -> WorkLog:
        log, shards = self._lanes.setdefault((kind, id, name), (MemoryLog(), MemoryShards()))
        return WorkLog(log, MemoryLeases(shards), slots)

    def draft(self, kind: str, id: str) -> Draft:
        return _MemoryDraft(self, kind, id)

    def read(
        self, kind: str, id: str, table: str, columns: list[str] | None = None, rows: Rows = ALL
    ) -> Iterator[pa.RecordBatch]:
        if (kind, id, table) not in self._tables:
            raise NotFound(f"no table {table!r} in {kind} {id}")
        batches = (batch.select(columns) if columns else batch for batch in self._tables[kind, id, table])
        if rows.at is None:
            return batches
        from evaluand.store.window import take_rows  # which needs Arrow

        return take_rows(batches, rows.at)

    def damage(self, kind: str, id: str, *, quick: bool = False) -> list[Fault]:
        return []

    def checks(self, kind: str, id: str) -> dict[str, dict[str, Any]]:
        return self._checks.get((kind, id), {})

    def add_check(self, kind: str, id: str, key: str, outcome: Mapping[str, Any]) -> None:
        self._checks.setdefault((kind, id), {}).setdefault(key, dict(outcome))

    def find(self, kind: str, origin: str) -> list[str]:
        manifests = (self.manifest(kind, id) for id in self.ids(kind))
        found = [m for m in manifests if origin in found_by(m)]
        return [m["id"] for m in sorted(found, key=lambda m: m["created"], reverse=True)]

    def refer(self, name: str, kind: str, id: str, about: Mapping[str, Any] = {}) -> None:
        self._about[kind, check_name(name)] = decode(encode(about))
        self._refs[kind, name] = Ref(name, kind, id)

    def about(self, name: str, kind: str) -> Mapping[str, Any]:
        return self._about.get((kind, name), {})

    def refs(self) -> list[Ref]:
        return sorted(self._refs.values())

    def named(self, name: str) -> list[Ref]:
        return [ref for kind in kind_names() if (ref := self._refs.get((kind, name)))]

    def damaged_kinds(self, name: str) -> list[str]:
        return []


class _MemoryDraft:
    def __init__(self, store: MemoryStore, kind: str, id: str) -> None:
        self._store, self._kind, self._id = store, kind, id
        self._tables: dict[str, list[pa.RecordBatch]] = {}

    def append(self, table: str, batch: pa.RecordBatch) -> None:
        self._tables.setdefault(table, []).append(batch)

    def seal(self, manifest: Manifest) -> Manifest:
        key = self._kind, self._id
        tables = {name: {"rows": sum(b.num_rows for b in batches)} for name, batches in self._tables.items()}
        content = encode(with_seal(manifest | {"format": FORMAT, "tables": tables}))
        require_shape(decode(content) | {"tables": {}}, sealed=True)
        with self._store._sealing:
            if not self._store.is_sealed(*key):
                self._store._tables |= {(*key, name): batches for name, batches in self._tables.items()}
                self._store._manifests[key] = content  # last: from then on, other threads read the tables
                for lane in [*self._store._lanes]:  # a copy: other threads add to them
                    if lane[:2] == key:
                        self._store._lanes.pop(lane, None)
        return self._store.manifest(*key)

    def discard(self) -> None:
        self._tables.clear()


def with_seal(manifest: Manifest) -> Manifest:
    """A manifest with the digest of everything else in it, so that changes are detected."""
    rest = {name: value for name, value in manifest.items() if name != "seal"}
    return rest | {"seal": digest(rest).hex()}


def check_store(store: Any) -> None:
    """Refuses an object that is not a store.

    Raises:
        SpecError: for example for a path.
    """
    if not hasattr(store, "manifest") or not hasattr(store, "draft"):
        raise SpecError(f"{store!r} is not a store; use MemoryStore(), or DirectoryStore(path) for a folder")


def check_name(name: str) -> str:
    """Returns a name if it is valid.

    Raises:
        SpecError: it is empty, blank, very long or has control characters.
    """
    if len(name) > MOST_NAME:
        raise SpecError(f"a name must have at most {MOST_NAME:,} characters, not {len(name):,}: {name[:40]!r}…")
    if not name.strip():
        raise SpecError(f"a name must not be empty or blank: {name!r}")
    if any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in name):
        raise SpecError(f"a name must not have control characters: {name!r}")
    return name


def give_name(
    store: Store,
    name: str | None,
    kind: str,
    id: str,
    origin: Mapping[str, Any] | None = None,
    dataset: str | None = None,
) -> None:
    """Makes a name refer to an artifact, with what belongs to the name.

    Args:
        name: None for no name.
        origin: what is known of the origin of the work under this name; None if that is the artifact's own.
        dataset: the name of its dataset there.
    """
    if name is None:
        return
    earlier = store.about(name, kind) if Ref(name, kind, id) in store.named(name) else {}
    about: dict[str, Any] = {"created": earlier.get("created") or now()}
    known = {"origin": None if origin is None else dict(origin), "dataset": dataset}
    store.refer(name, kind, id, about | {part: value for part, value in known.items() if value is not None})


def as_named(store: Store, manifest: Manifest, name: str | None) -> Manifest:
    """A manifest with the name by which it was asked for, and the origin of the work under that name.

    Without a name, or what belongs to it, that of the work for which it was made first.
    """
    kind = manifest["kind"]
    about = {} if name is None or Ref(name, kind, manifest["id"]) not in store.named(name) else store.about(name, kind)
    if not about:
        return manifest
    own = {"origin": about["origin"]} if "origin" in about else {}
    return manifest | {"name": name, "provenance": manifest["provenance"] | own}


def resolve(store: Store, text: str, kind: str | None = None) -> tuple[str, str]:
    """The (kind, id) of a name, an id or the first digits of an id (at least four).

    A name of several kinds refers to the first kind by rank. A dataset's name, which only its manifest has, counts if
    nothing else matches.

    Raises:
        NotFound: nothing matches, or several artifacts do; the message lists them.
        EngineError: the only name that matches is damaged.
    """
    among = [kind] if kind else kind_names()
    refs = store.named(text)
    named = [(ref.kind, ref.id) for ref in refs if ref.kind in among]
    damaged = [each for each in store.damaged_kinds(text) if each in among]
    if named:
        first = min(named, key=lambda found: among.index(found[0]))
        for each in damaged:
            what = f"the name {text!r} of {with_article(singular(each))}"
            warn(f"{what} is damaged; this is the {singular(first[0])} of that name")
        return first
    if damaged:
        what = f"the name {text!r} of {with_article(singular(damaged[0]))}"
        raise EngineError(
            f"{what} is damaged; give an id, which `evaluand list` shows; `evaluand gc --damaged` removes the name"
        )
    found = [(k, id) for k in among if len(text) >= 4 for id in store.ids(k, text.lower(), damaged=True)]
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFound(f"{text!r} refers to several: {', '.join(f'{k} {id}' for k, id in found)}; give more digits")
    for name in (one.name for one in kinds() if one.named_by_manifest and one.name in among):
        ids = [id for id in store.ids(name) if (_manifest_if_sound(store, name, id) or {}).get("name") == text]
        if len(ids) == 1:
            return name, ids[0]
        if ids:
            raise NotFound(f"{text!r} refers to several {name}: {', '.join(ids)}; give the first digits of one")
    if kind and refs:
        others = " and ".join(singular(ref.kind) for ref in refs)
        raise NotFound(f"no {singular(kind)} is called {text!r}, but {others}; see `evaluand list`")
    names = sorted({ref.name for ref in store.refs()})
    shown = [name for name in names if shown_name(name) == text]
    if len(shown) == 1:
        return resolve(store, shown[0], kind)
    if shown:
        raise NotFound(f"{text!r} refers to several names: {', '.join(shown)}; give one of them")
    if near := [name for name in names if name.endswith(f"/{text}")]:
        raise NotFound(f"nothing is called {text!r} here; did you mean {' or '.join(map(repr, near))}?")
    raise NotFound(
        f"nothing is called {text!r} here{nearest(text, names)}; see `evaluand list` for names and ids (at least four"
        " digits)"
    )


def find_sealed(store: Store, kind: str, *origins: str) -> list[Manifest]:
    """The manifests of the sealed artifacts that `Store.find` finds by any of the origins, newest first.

    Those that are damaged are left out, with a warning.
    """
    warn_of_unread(store, kind)
    ids = dict.fromkeys(id for origin in origins for id in store.find(kind, origin))
    found = [manifest for id in ids if (manifest := sealed_manifest(store, kind, id)) is not None]
    return sorted(found, key=lambda manifest: str(manifest["created"]), reverse=True)


def find_made_from(store: Store, kind: str, origin: str, *ids: str) -> list[Manifest]:
    """The manifests of the artifacts of a kind, open ones too, made from any of some artifacts, newest first.

    Those that are damaged are left out, with a warning.

    Args:
        origin: the kind of these artifacts.
    """
    warn_of_unread(store, kind)
    if find_kind(kind).found_by:
        is_id = find_kind(origin).is_found_by_id
        keys = ids if is_id else [(sealed_manifest(store, origin, id) or {}).get("digest", "") for id in ids]
        candidates = [*dict.fromkeys(made for key in keys for made in store.find(kind, key))]
    else:  # their ids do not stand for what they were made from
        candidates = store.ids(kind)
    origins_asked = {(origin, id) for id in ids}
    found = (manifest for made in candidates if (manifest := _manifest_if_sound(store, kind, made)) is not None)
    chosen = (manifest for manifest in found if _is_made_from(manifest, origins_asked))
    return sorted(chosen, key=lambda manifest: str(manifest["created"]), reverse=True)


def find_sealed_from(store: Store, kind: str, origin: str, *ids: str) -> list[Manifest]:
    """The manifests of the sealed artifacts among those that `find_made_from` finds."""
    return [manifest for manifest in find_made_from(store, kind, origin, *ids) if "digest" in manifest]


def warn_of_unread(store: Store, kind: str) -> None:
    """Warns of artifacts of a kind that cannot be read: it is not known whether they belong to what is looked up."""
    readable = {*store.ids(kind)}
    if unread := [id[:12] for id in store.ids(kind, damaged=True) if id not in readable]:
        damaged = f"{plural(len(unread), singular(kind))} {pluralize(len(unread), 'is', 'are')} damaged"
        warn(f"{damaged}: {list_places(unread)}; what may belong here is left out; see `evaluand verify`")


def _is_made_from(manifest: Manifest, keys: set[tuple[str, str]]) -> bool:
    with suppress(EngineError):  # the manifest does not say
        return not keys.isdisjoint(origins(manifest))
    return False


def sealed_manifest(store: Store, kind: str, id: str) -> Manifest | None:
    """The manifest of a sealed artifact; None if it is open, damaged or not in the store."""
    manifest = _manifest_if_sound(store, kind, id)
    return None if manifest is None or "digest" not in manifest else manifest


def caveats(store: Store, made: Iterable[tuple[str, str]]) -> list[str]:
    """What every number of some artifacts is to be shown with: rules that stopped early, answers that were kept.

    Args:
        made: the (kind, id) of each artifact.
    """
    runs = _made_of(store, made)
    notes = dict[str, None]()
    for manifest in runs:
        name = shown_name(manifest["name"] or manifest["id"][:12])
        for kept in manifest.get("kept", ()):
            share = f"{kept['kept']:,} of {kept['of']:,} {kept['what']}"
            notes[f"{name}: {share} were kept from before a change: {'; '.join(kept['changes'])}"] = None
    return [*map(str, _stops_among(runs)), *notes]


def find_stops(store: Store, made: Iterable[tuple[str, str]]) -> list[UntilOrigin]:
    """The rules of `--until` that stopped runs before all examples, from which artifacts were made.

    Args:
        made: the (kind, id) of each artifact.
    """
    return _stops_among(_made_of(store, made))


def _made_of(store: Store, made: Iterable[tuple[str, str]]) -> list[Manifest]:
    """The manifests of sealed artifacts and of all that they were made from."""
    waiting, manifests = [*dict.fromkeys(made)], list[Manifest]()
    for kind, id in waiting:  # which grows
        manifest = sealed_manifest(store, kind, id) if find_kind(kind).made_from else None
        if manifest is not None:
            manifests.append(manifest)
            waiting += [key for key in origins(manifest) if key not in waiting]
    return manifests


def _stops_among(manifests: Iterable[Manifest]) -> list[UntilOrigin]:
    stops = ((origin := experiment_origin(manifest)) and origin.until for manifest in manifests)
    return [*dict.fromkeys(stop for stop in stops if stop and stop.drawn < stop.of)]


def sealed_digests(store: Store, kind: str, ids: Iterable[str]) -> dict[str, str | None]:
    """By id, the digest of each sealed artifact; None as for `sealed_manifest`."""
    return {id: (sealed_manifest(store, kind, id) or {}).get("digest") for id in ids}


def _manifest_if_sound(store: Store, kind: str, id: str) -> Manifest | None:
    try:
        return store.manifest(kind, id)
    except EngineError:  # it is damaged, or was removed
        return None


def exists(store: Store, kind: str, id: str) -> bool:
    """Whether the store has the artifact, open, sealed or damaged.

    Raises:
        EngineError: a link is in the place of its folder, or the folder cannot be read.
    """
    try:
        store.manifest(kind, id)
    except NotFound:
        return False
    except EngineError:
        store.is_sealed(kind, id)  # raises unless only the manifest is damaged
        return id in store.ids(kind, id, damaged=True)
    return True


def begin(
    store: Store,
    kind: str,
    spec: Mapping[str, Any],
    *,
    name: str | None,
    again: Callable[[str], bool],
    resume: str | None,
    about: Callable[[], Manifest],
    repeat_lost: bool = True,
    origin: Mapping[str, Any] | None = None,
    dataset: str | None = None,
) -> Manifest:
    """The manifest of the attempt at a spec to work on: already sealed, open, or opened now.

    Args:
        again: whether to make a further attempt, called with the id of the last.
        resume: the id of the attempt to continue.
        about: returns the rest of the manifest; called only if there is work to do.
        repeat_lost: whether open work that asks models is continued although its journal is missing.
        origin: belongs to the name, see `Store.about`; so does `dataset`.

    Raises:
        SpecError: `resume` is not an attempt at this spec.
        EngineError: the stored manifest has another spec than its id says, or its journal is missing.
    """
    id, attempt = _attempt(store, kind, spec, again, resume)
    if store.is_sealed(kind, id):
        manifest = store.manifest(kind, id)
    else:
        head = {"format": FORMAT, "kind": kind, "id": id, "name": name, "spec": spec, "attempt": attempt}
        opened = None if repeat_lost else _manifest_if_sound(store, kind, id)
        if opened is not None and asks_models(opened) and (faults := store.damage(kind, id, quick=True)):
            raise EngineError(f"{faults[0]} if --repeat-lost (repeat_lost=True) is added, as it asks models")
        manifest = check_identity(store.open(with_mac(store, head | about() | {"created": now()})))
    give_name(store, name, kind, id, origin, dataset)
    return manifest


def asks_models(manifest: Manifest) -> bool:
    """Whether work is known to ask models, so that to repeat it costs."""
    return bool(manifest["provenance"].get("models") or manifest["provenance"].get("judges"))


def check_identity(manifest: Manifest) -> Manifest:
    """Returns a manifest if its id is that of its spec.

    Raises:
        EngineError: it is not: somebody has written another spec.
    """
    kind, id = manifest["kind"], manifest["id"]
    if artifact_id(kind, manifest["spec"], manifest["attempt"]) != id:
        raise EngineError(
            f"{singular(kind)} {id} cannot be continued: its manifest was changed, and its spec does not match its id;"
            " see `evaluand verify`"
        )
    return manifest


def at_once(
    kind: str,
    id: str,
    spec: Mapping[str, Any],
    name: str | None,
    *,
    digest: str,
    counts: Mapping[str, int],
    provenance: Mapping[str, Any],
) -> Manifest:
    """The manifest of an artifact that is written at once and never open."""
    head = {"format": FORMAT, "kind": kind, "id": id, "name": name, "spec": spec, "attempt": 0, "created": now()}
    return head | {"digest": digest, "counts": counts, "provenance": provenance}


@contextmanager
def drafted(store: Store, kind: str, id: str) -> Iterator[Draft]:
    """A draft that is discarded if writing it fails."""
    draft = store.draft(kind, id)
    try:
        yield draft
    except BaseException:
        draft.discard()
        raise


@contextmanager
def journalled(kind: str, id: str) -> Iterator[None]:
    """A context for parsing journal records: whatever cannot be parsed is damage of the journal.

    Raises:
        EngineError: the journal has records that evaluand did not write.
    """
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise EngineError(
            f"the journal of {singular(kind)} {id} has a record that evaluand did not write: {error}"
        ) from error


def _attempt(
    store: Store, kind: str, spec: Mapping[str, Any], again: Callable[[str], bool], resume: str | None
) -> tuple[str, int]:
    """The id and number of the attempt."""
    made = attempts(store, kind, spec)
    if resume:
        if resume not in made:  # perhaps begun in format 2, whose specs lack the ids of what something is made from
            asked = {name: value for name, value in spec.items() if not name.endswith(("_id", "_ids"))}
            made = attempts(store, kind, asked)
        if resume not in made:
            raise SpecError(
                f"{kind} {resume} cannot be resumed: its code, data or settings have changed since it began;"
                f" {find_kind(kind).restart}"
            )
        return resume, made.index(resume)
    damage = describe_damage(store, kind, made[-1]) if made else ""
    if made and not damage:
        is_unreadable = not store.is_sealed(kind, made[-1]) and _manifest_if_sound(store, kind, made[-1]) is None
        if is_unreadable or not again(made[-1]):  # who opens it writes its manifest again
            return made[-1], len(made) - 1
    elif made:
        warn(f"{damage}; it is made again, with what can be read of it")
    return artifact_id(kind, spec, len(made)), len(made)


def describe_damage(store: Store, kind: str, id: str) -> str:
    """What is damaged of the tables of a finished artifact, by their sizes alone; empty if nothing is."""
    faults = store.damage(kind, id, quick=True) if sealed_manifest(store, kind, id) else []
    return f"{singular(kind)} {id[:12]} is damaged: {faults[0]}" if faults else ""


def attempts(store: Store, kind: str, spec: Mapping[str, Any]) -> list[str]:
    """The ids of all attempts at a spec, the last one last; a damaged one may have been removed between others."""
    made = list[str]()
    while any(exists(store, kind, artifact_id(kind, spec, number)) for number in (len(made), len(made) + 1)):
        made.append(artifact_id(kind, spec, len(made)))
    return made


def now() -> str:
    """The current time as in manifests: UTC, with microseconds."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="microseconds")
