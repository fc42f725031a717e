"""Facts about the matches and ratings in a report: which belong to its runs, who judged, and what has no outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from evaluand.core.errors import plural, singular
from evaluand.report.facts.base import Facts, Names, count_reasons
from evaluand.report.text import SHORT_ID

if TYPE_CHECKING:
    from evaluand.comparison.ratings.stored import Ratings
    from evaluand.evaluation.matching.matches import Matches
    from evaluand.run.runner import Run
    from evaluand.store.store import Store

_MOST_RATINGS: Final = 10


def match_facts(sets: Mapping[str, Matches], ratings: Mapping[str, Ratings]) -> dict[str, list[Facts]]:
    """Matches and ratings, by title, as a report shows them.

    Returns:
        `matches`, `ratings`, and `unrated`: `title` and `id` of each set without ratings.
    """
    rated = {digest for each in ratings.values() for digest in each.manifest["spec"]["matches"]}
    return {
        "matches": [match_set_facts(matches, title) for title, matches in sets.items()],
        "ratings": [each.to_dict() | {"title": title} for title, each in ratings.items()],
        "unrated": [
            {"title": title, "id": matches.id} for title, matches in sets.items() if matches.digest not in rated
        ],
    }


def match_set_facts(matches: Matches, title: str) -> Facts:
    """A set of matches: its systems, how it was made, its rows by status, and why rows have no outcome."""
    manifest = matches.manifest
    names = ("id", "digest", "name", "counts", "created", "sealed", "pinned", "spec", "provenance")
    about = {"name": None} | {name: manifest[name] for name in names if name in manifest}
    return about | {
        "title": title,
        "systems": matches.systems,
        "judged_by": judge_text(manifest["spec"]),
        "missing": count_reasons(_iterate_undecided(matches)),
    }


def judge_text(spec: Mapping[str, Any]) -> str:
    """Who judged and what was asked, in one sentence without a full stop.

    Example:
        >>> judge_text({"judge": {"kind": "by_score"}, "schedule": {"kind": "all_pairs"}, "orders": "both"})
        'judged by by_score, all pairs, each in both orders'
    """
    if "judge" not in spec:
        return "judged elsewhere"
    judge = spec["judge"]
    parameters = judge.get("parameters")
    name = judge.get("name") or (parameters.get("name") if isinstance(parameters, Mapping) else None)
    kind = "a function" if judge.get("kind") == "function" else judge.get("kind")
    parts = [f"judged by {name or kind or 'a judge'}"]
    if schedule := (spec.get("schedule") or {}).get("kind"):
        parts.append(str(schedule).replace("_", " "))
    if orders := spec.get("orders"):
        parts.append("each in both orders" if orders == "both" else "each in one order, by chance")
    return ", ".join(parts)


def find_match_sets(store: Store, runs: Sequence[Run]) -> list[Matches]:
    """The sets of matches that compare at least two of some runs; of sets by one judge those that no later set covers.

    Returns:
        The newest first.
    """
    from evaluand.evaluation.matching.matches import Matches  # on use: `evaluand list` does without Arrow

    digests = {run.digest for run in runs}
    manifests = [store.manifest("matches", id) for id in store.ids("matches") if store.is_sealed("matches", id)]
    manifests.sort(key=lambda manifest: str(manifest["created"]), reverse=True)
    chosen: list[Any] = []
    for manifest in manifests:
        compared = set(manifest["spec"].get("runs", ()))
        covered = any(
            compared <= set(each["spec"]["runs"]) and each["spec"]["judge"] == manifest["spec"]["judge"]
            for each in chosen
        )
        if len(compared & digests) > 1 and not covered:
            chosen.append(manifest)
    return [Matches(store, manifest["id"]) for manifest in chosen]


def find_ratings(store: Store, sets: Sequence[Matches]) -> list[Ratings]:
    """The ratings from some sets of matches that have a name; of a set without named ones, the newest.

    Returns:
        At most 10, the newest first.
    """
    from evaluand.comparison.ratings.stored import Ratings  # on use: `evaluand list` does without Arrow

    digests = {matches.digest for matches in sets}
    named = {ref.id for ref in store.refs() if ref.kind == "ratings"}
    manifests = [store.manifest("ratings", id) for id in store.ids("ratings") if store.is_sealed("ratings", id)]
    suiting = [manifest for manifest in manifests if digests & set(manifest["spec"]["matches"])]
    suiting.sort(key=lambda manifest: (manifest["id"] in named, str(manifest["created"])), reverse=True)
    chosen: list[Any] = []
    rated: set[str] = set()
    for manifest in suiting:
        rates = digests & set(manifest["spec"]["matches"])
        if manifest["id"] in named or not rates <= rated:
            chosen.append(manifest)
            rated |= rates
    return [Ratings(store, manifest["id"]) for manifest in chosen[:_MOST_RATINGS]]


def by_title(store: Store, artifacts: Sequence[Any]) -> dict[str, Any]:
    """Matches or ratings by their name, or by their kind and the first digits of their id."""
    names = Names(store.refs())
    found: dict[str, Any] = {}
    for each in artifacts:
        known = names.find(each.kind, each.id, None)
        title = known[0] if known else f"{singular(each.kind)} {each.id[:SHORT_ID]}"
        found[title] = each
    return found


def bias_texts(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Position bias and inconsistency of judges, a sentence for each.

    Args:
        rows: the columns of `store.tables.BIAS`.

    Example:
        >>> row = {"judge": None, "measure": "position_bias", "share": 0.6, "low": 0.52, "high": 0.68, "n": 100.0}
        >>> [text] = bias_texts([row | {"first": 55.0, "second": 35.0, "neither": 10.0, "n_left_out": 0}])
        >>> print(text)
        The response shown first won 60.0 % [52.0, 68.0] of 100 judgements: the first 55, the second 35, 10 ties.
    """
    for row in rows:
        judge = "" if row["judge"] is None else f"{row['judge']}: "
        share = f"{_percent(row['share'])}{_interval(row)}"
        first, second, neither = (f"{row[name]:,.6g}" for name in ("first", "second", "neither"))
        if row["measure"] == "position_bias":
            if not row["n"]:
                text = "Position bias is unknown: no pair of systems was judged in both orders."
            else:
                text = (
                    f"The response shown first won {share} of {plural_of(row['n'], 'judgement')}: the first "
                    f"{first}, the second {second}, {neither} ties."
                )
            left = plural(row["n_left_out"], "judgement") + " of pairs of systems seen in one order only"
        else:
            if not row["n"]:
                text = "Inconsistency is unknown: no pair was judged in both orders."
            else:
                text = (
                    f"{share} of {plural_of(row['n'], 'pair')} judged in both orders have opposite winners: the first "
                    f"response won twice in {first}, the second in {second}; {neither} more have one tie."
                )
            left = plural(row["n_left_out"], "pair") + " judged in one order only"
        yield judge + text + (f" Left out: {left}." if row["n_left_out"] else "")


def plural_of(count: float, noun: str) -> str:
    """A count that may have a fraction, with its noun.

    Example:
        >>> plural_of(1.0, "pair"), plural_of(2.5, "pair")
        ('1 pair', '2.5 pairs')
    """
    return f"{count:,.6g} {noun if count == 1 else f'{noun}s'}"


def method_texts(facts: Mapping[str, Any]) -> Iterator[str]:
    """What the ratings mean, a sentence each.

    Args:
        facts: ratings, as `Ratings.to_dict` returns them.
    """
    method = facts["method"]
    parameters = method["parameters"]
    baseline = parameters.get("baseline")
    if method["kind"] == "bradley_terry":
        yield "Bradley–Terry ratings: their mean is 1000, and 400 points more are odds of 10 to 1."
        ties = parameters.get("ties")
        yield "A tie is half a win." if ties == "half" else f"Ties have a parameter ({ties})."
    elif baseline is not None:
        at = ", as it would be at equal length" if method["kind"] == "length_controlled" else ""
        yield f"Ratings are the share of wins against {baseline}{at}; a tie is half a win."
    else:
        yield "Ratings are the mean share of wins over opponents, each of which counts equally; a tie is half a win."
    if covariates := parameters.get("covariates"):
        yield f"They are ratings at equal {', '.join(covariates).replace('_', ' ')}."
    if parameters.get("penalty"):
        yield f"A penalty of {parameters['penalty']:g} draws them towards the mean."
    rule = parameters.get("contradictory")
    if rule in ("tie", "drop"):
        yield f"Pairs with opposite winners in their two orders {'are ties' if rule == 'tie' else 'are left out'}."
    if parameters.get("missing") == "lose":
        yield "A missing response loses."
    yield (
        f"Intervals are at {100 * facts['confidence']:g} %; systems that share a letter cannot be distinguished at that"
        " confidence, with p values adjusted by Holm."
    )


def is_share(facts: Mapping[str, Any]) -> bool:
    """Whether ratings are shares of wins, and not points."""
    return bool(facts["method"]["kind"] != "bradley_terry")


def _percent(share: float | None) -> str:
    return "an unknown share" if share is None else f"{100 * share:.1f} %"


def _interval(row: Mapping[str, Any]) -> str:
    return "" if row["low"] is None or row["high"] is None else f" [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"


def _iterate_undecided(matches: Matches) -> Iterator[tuple[int, str, str]]:
    """(`_index_`, status, reason) of each match without an outcome."""
    for batch in matches.batches(["_index_", "status", "reason"]):
        for row in batch.filter(batch.column("reason").is_valid()).to_pylist():
            yield row["_index_"], row["status"], row["reason"]
