"""`rate`: ratings of systems from one or several sets of matches, stored as `Ratings`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import SpecError, nearest, warn
from evaluand.core.provenance import provenance
from evaluand.engine.keyed_work import Receipt
from evaluand.matches.matches import Matches, file_origin
from evaluand.matches.ratings.method import RatingMethod, RatingParameters
from evaluand.matches.ratings.stored import TABLES, Ratings
from evaluand.matches.ratings.tables import compute_tables, gather
from evaluand.matches.schedule import find_system
from evaluand.metrics.base.metric import check_confidence
from evaluand.store.sealing import seal_tables
from evaluand.store.store import check_name, exists


def rate(
    *matches: Matches,
    method: RatingMethod | str = "bradley_terry",
    confidence: float = 0.95,
    name: str | None = None,
    origin: dict[str, Any] | None = None,
    **parameters: Unpack[RatingParameters],
) -> Ratings:
    """Rates the systems of some matches; ratings that are already stored are returned.

    Several sets of matches count together, so that an earlier comparison is extended by a later one: systems with the
    same label are one system, and what the same judge said about the same pair on the same example counts once.

    Args:
        matches: one set or several, of one store.
        method: `bradley_terry`, `win_rate`, `equal_length`, or a `RatingMethod` with all of its parameters.
        confidence: of the intervals and of the statement that two systems differ.
        name: a name for the ratings.
        origin: where the request came from, for provenance.
        parameters: those of `RatingMethod`: `ties`, `penalty`, `covariates`, `baseline`, `outcomes`, `contradictory`,
            `missing`, `weighted`, `replicates` and `seed`.

    Raises:
        SpecError: a parameter is wrong, or the matches do not have what the method needs.
        DataError: matches have no outcome, and `missing` refuses that.

    Example:
        >>> from evaluand import Dataset, Matcher, Runner
        >>> data = Dataset.from_rows([{"id": str(i), "input": "ab" * (i % 3)} for i in range(30)])
        >>> runner = Runner()
        >>> tasks = str.upper, lambda text: text + "!", lambda text: text[:1] + "!!"
        >>> shorter = lambda first, second: "first" if len(first) < len(second) else "second"
        >>> matches = Matcher().match([runner.run(task, data) for task in tasks], shorter, labels=["a", "b", "c"])
        >>> print(rate(matches))
        bradley_terry v2 interval=bootstrap(1000,0) 95%
        a: 1189 [1131, 1278] a; won 50, tied 0, lost 10
        c: 952 [838, 1047] b; won 25, tied 0, lost 35
        b: 859 [823, 891] b; won 15, tied 0, lost 45
    """
    check_confidence("rate", confidence)
    if name is not None:
        check_name(name)
    chosen = _read_method(method, parameters)
    sets = _check_matches(matches)
    store = sets[0].store
    systems = list(dict.fromkeys(label for each in sets for label in each.systems))
    check_systems(chosen, systems)
    spec: dict[str, Any] = {
        "matches": [each.digest for each in sets],
        "sets": [_identify_set(each) for each in sets],
        "systems": systems,
        "confidence": float(confidence),
        "method": chosen.spec,
    }
    id = identity.artifact_id("ratings", spec)
    stored = store.is_sealed("ratings", id)
    if not stored:
        table = gather(sets)
        if not chosen.weighted and len(np.unique(table.weight[~np.isnan(table.weight)])) > 1:
            warn(
                "the examples have weights, which are not used; rate with weighted=True (--weighted) to count each"
                " match by them"
            )
        tables = compute_tables(table, chosen, spec["confidence"])
        batches = {name_: pa.RecordBatch.from_pylist(tables[name_], schema) for name_, schema in TABLES.items()}
        made_from = provenance(origin) | {"matches": [each.id for each in sets]}
        seal_tables(store, "ratings", id, spec, batches, name, made_from)
    if name is not None:
        store.refer(name, "ratings", id)
    receipt = Receipt(1, kept=1, why="made before") if stored else Receipt(1, called=1)
    return Ratings(store, id, receipt)


def _read_method(method: RatingMethod | str, parameters: RatingParameters) -> RatingMethod:
    known = [*RatingParameters.__annotations__]
    for name in parameters:
        if name not in known:
            raise SpecError(f"rate has no parameter {name!r}{nearest(name, [*known, 'method', 'confidence', 'name'])}")
    if not isinstance(method, RatingMethod):
        return RatingMethod(kind=method, **parameters)
    if parameters:
        raise SpecError(f"{next(iter(parameters))} is a parameter of the RatingMethod that is the method; set it there")
    return method


def check_systems(method: RatingMethod, systems: Sequence[str]) -> None:
    """Refuses a method that names a system that has no matches.

    Raises:
        SpecError: no system is called so.
    """
    if method.baseline is not None:
        find_system(method.baseline, systems)


def _check_matches(matches: Sequence[Any]) -> list[Matches]:
    """The distinct sets of matches, in one store."""
    if not matches or not all(isinstance(each, Matches) for each in matches):
        raise SpecError("rate takes matches: write rate(matches), or `evaluand rate NAME` in a shell for stored ones")
    store = matches[0].store
    for each in matches:
        if not exists(store, "matches", each.id):
            raise SpecError(f"{each!r} is in another store; matches are rated in one store")
        if not store.is_sealed("matches", each.id):
            raise SpecError(f"matches {each.id} are not finished; continue them before they are rated")
    return list({(each.digest, _identify_set(each)): each for each in matches}.values())


def _identify_set(matches: Matches) -> str:
    """A digest of what decides how matches are counted besides their rows."""
    spec = matches.manifest["spec"]
    parts = {name: spec.get(name) for name in ("systems", "runs", "dataset", "judge", "battles")}
    return identity.digest(parts | {"file": file_origin(matches)}).hex()
