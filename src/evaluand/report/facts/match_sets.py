"""Facts about the matches and ratings in a report: which belong to its runs, who judged, and what has no outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from evaluand.matches.kind import MATCHES, RATINGS, judge_name
from evaluand.matches.matches import sum_usage
from evaluand.report.facts.base import Facts, Names, count_reasons
from evaluand.report.facts.judges import matches_judge_facts
from evaluand.report.text import SHORT_ID
from evaluand.store.kinds import singular
from evaluand.store.store import caveats, find_sealed, find_sealed_from

if TYPE_CHECKING:
    from evaluand.matches.matches import Matches
    from evaluand.matches.ratings.rating import Ratings
    from evaluand.run.runner import Run
    from evaluand.store.store import Store

_MOST_RATINGS: Final = 10


def match_facts(sets: Mapping[str, Matches], ratings: Mapping[str, Ratings]) -> dict[str, list[Facts]]:
    """Matches and ratings, by title, as a report shows them.

    Returns:
        `matches`, `ratings`, and `unrated`: `title` and `id` of each set without ratings.
    """
    rated = {id for each in ratings.values() for id in each.manifest["provenance"]["matches"]}
    return {
        "matches": [match_set_facts(matches, title) for title, matches in sets.items()],
        "ratings": [each.to_dict() | {"title": title} for title, each in ratings.items()],
        "unrated": [{"title": title, "id": matches.id} for title, matches in sets.items() if matches.id not in rated],
    }


def ratings_facts(ratings: Ratings) -> Facts:
    """Ratings, and the `sets` of matches behind them with their rows by status; None for the counts of a lost set."""
    ids = ratings.manifest["provenance"]["matches"]
    sets = [
        {"id": id, "name": None, "counts": None, "left_out": None, "caveats": caveats(ratings.store, [(MATCHES, id)])}
        | ({} if each is None else {"name": each.name, "counts": each.counts, "left_out": each.left_out})
        for id, each in zip(ids, ratings.matches, strict=True)
    ]
    return ratings.to_dict() | {"sets": sets, "judges": matches_judge_facts(*ratings.matches)}


def run_ratings_facts(store: Store, runs: Sequence[Run]) -> list[Facts]:
    """The ratings of some runs, each with its `title`."""
    found = find_ratings(store, find_match_sets(store, runs))
    return [ratings_facts(each) | {"title": title} for title, each in by_title(store, found).items()]


def match_set_facts(matches: Matches, title: str) -> Facts:
    """A set of matches: its systems, how it was made, its rows by status, and why rows have no outcome."""
    manifest = matches.manifest
    names = ("id", "digest", "name", "counts", "created", "sealed", "pinned", "spec", "provenance")
    about = {"name": None} | {name: manifest[name] for name in names if name in manifest}
    return about | {
        "title": title,
        "systems": matches.systems,
        "judged_by": judge_text(manifest),
        "left_out": matches.left_out,
        "caveats": caveats(matches.store, [(MATCHES, matches.id)]),
        "missing": count_reasons(_iterate_undecided(matches)),
        "usage": sum_usage(matches),
        "judges": matches_judge_facts(matches),
    }


def judge_text(manifest: Mapping[str, Any]) -> str:
    """Who judged and what was asked, in one sentence without a full stop.

    Example:
        >>> spec = {"judge": {"kind": "by_score"}, "schedule": {"kind": "all_pairs"}, "orders": "both"}
        >>> judge_text({"spec": spec, "provenance": {}})
        'judged by by_score, all pairs, each in both orders'
    """
    spec = manifest["spec"]
    if "judge" not in spec:
        return "judged elsewhere"
    judge = spec["judge"]
    if judge.get("kind") == "by_score" and isinstance(judge.get("scorer"), Mapping):
        better = "higher" if judge.get("higher_is_better", True) else "lower"
        parts = [f"the {better} score of {judge['scorer'].get('kind') or 'a scorer'} wins"]
    else:
        name = judge_name(manifest)
        parts = [f"judged by {'a function' if name == 'function' else name}"]
    if schedule := (spec.get("schedule") or {}).get("kind"):
        parts.append(str(schedule).replace("_", " "))
    if orders := spec.get("orders"):
        parts.append("each in both orders" if orders == "both" else "each in one order, by chance")
    return ", ".join(parts)


def find_match_sets(store: Store, runs: Sequence[Run]) -> list[Matches]:
    """The sets of matches that compare at least two of some runs; of sets by one judge those that no later set covers.

    People judge answers, so their sets count for every run with the same ones.

    Returns:
        The newest first.
    """
    ids, digests = {run.id for run in runs}, {run.digest for run in runs}
    chosen: list[Matches] = []
    if not (manifests := [*find_sealed(store, MATCHES, *digests)]):
        return chosen
    from evaluand.matches.labelled_sets import is_by_people  # on use: `evaluand list` does without Arrow
    from evaluand.matches.matches import Matches

    for manifest in manifests:
        matches, spec = Matches(store, manifest["id"]), manifest["spec"]
        own = digests & {*spec["runs"]} if is_by_people(matches) else ids & {*manifest["provenance"]["runs"]}
        later = (each.manifest["spec"] for each in chosen)
        if len(own) > 1 and not any({*spec["runs"]} <= {*s["runs"]} and s["judge"] == spec["judge"] for s in later):
            chosen.append(matches)
    return chosen


def find_ratings(store: Store, sets: Sequence[Matches]) -> list[Ratings]:
    """The ratings from some sets of matches that have a name; of a set without named ones, the newest.

    Returns:
        At most 10, the newest first.
    """
    from evaluand.matches.ratings.rating import Ratings  # on use: `evaluand list` does without Arrow

    ids = {matches.id for matches in sets}
    suiting = find_sealed_from(store, RATINGS, MATCHES, *ids)
    named = {ref.id for ref in store.refs() if ref.kind == RATINGS} if suiting else set()
    suiting.sort(key=lambda manifest: (manifest["id"] in named, str(manifest["created"])), reverse=True)
    chosen: list[Any] = []
    rated: set[str] = set()
    for manifest in suiting:
        rates = ids & {*manifest["provenance"]["matches"]}
        if manifest["id"] in named or not rates <= rated:
            chosen.append(manifest)
            rated |= rates
    return [Ratings(store, manifest["id"]) for manifest in chosen[:_MOST_RATINGS]]


def by_title(store: Store, artifacts: Sequence[Any]) -> dict[str, Any]:
    """Matches or ratings by their name, or by their kind and the first digits of their id."""
    names = Names(store.refs() if artifacts else ())
    found: dict[str, Any] = {}
    for each in artifacts:
        known = names.find(each.kind, each.id, None)
        title = known[0] if known else f"{singular(each.kind)} {each.id[:SHORT_ID]}"
        found[title] = each
    return found


def _iterate_undecided(matches: Matches) -> Iterator[tuple[int, str, str]]:
    """(`_index_`, status, reason) of each match without an outcome."""
    for batch in matches.batches(["_index_", "status", "reason"]):
        for row in batch.filter(batch.column("reason").is_valid()).to_pylist():
            yield row["_index_"], row["status"], row["reason"]
