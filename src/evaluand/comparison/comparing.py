"""`compare`: evaluations against one another by some metrics, stored as a comparison."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import (
    Aggregation,
    Measure,
    check_measures,
    dataset_of,
    ranged,
    ranges_in,
    summary_of,
)
from evaluand.comparison.difference import difference, mean_of, only
from evaluand.comparison.pairing import PairedRows, paired, unpairable
from evaluand.comparison.ranking import letters
from evaluand.comparison.significance import benjamini_hochberg, holm
from evaluand.comparison.verdict import is_shown, printable, same, verdict
from evaluand.core import identity, registry
from evaluand.core.errors import EvaluandWarning, NotFound, SpecError
from evaluand.core.key_columns import INDEX
from evaluand.core.provenance import provenance
from evaluand.core.registry import nearest
from evaluand.engine.keyed_work import Receipt
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import Metric, Missing, check_confidence, check_whole_number
from evaluand.run.excerpts import asked, examples_at
from evaluand.run.runner import Run
from evaluand.store import tables as rows
from evaluand.store.store import Store, at_once, check_name, drafted, exists, resolve

METHOD = 3
"""Raised whenever the same evaluations and parameters would give other numbers."""

SHOWN_IDS = 5
_TABLES = {"pairs": rows.PAIRS, "ranking": rows.RANKING, "flips": rows.FLIPS}


class Comparison:
    """A comparison in a store.

    Attributes:
        labels: what the evaluations are called.
        receipt: whether it had to be made.
    """

    def __init__(
        self, store: Store, id: str, receipt: Receipt | None = None, labels: Sequence[str] | None = None
    ) -> None:
        self.store, self.id, self.receipt = store, id, receipt
        self.manifest = store.manifest("comparisons", id)
        self.labels: list[str] = list(labels or self.manifest["provenance"]["labels"])

    def __repr__(self) -> str:
        return f"Comparison({self.id[:12]}, {', '.join(map(printable, self.labels))})"

    def __str__(self) -> str:
        """A verdict for each pair and metric, and the ranking."""
        return "\n".join(printable(line) for line in self._lines())

    def _lines(self) -> Iterator[str]:
        labels, pairs = self.labels, self.pairs
        for pair in pairs:
            yield f"{what(pair)}: {pair['verdict']}"
        for place in self.ranking:
            value = "–" if place["value"] is None else f"{place['value']:.4g}"
            yield f"{what(place)}: {labels[place['evaluation']]} {value} {place['letters']}"
        for one in self.left_out:
            yield f"{what(one | {'target': None})}: not compared, {one['reason']}"

    @property
    def digest(self) -> str:
        """32 hexadecimal digits that stand for every number."""
        return str(self.manifest["digest"])

    @property
    def confidence(self) -> float:
        return float(self.manifest["spec"]["confidence"])

    @property
    def evaluations(self) -> list[str]:
        """The ids of the evaluations compared, in the order given."""
        return list(self.manifest["provenance"]["evaluations"])

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """Every two evaluations by every metric: the columns of `rows.PAIRS`, and the `verdict` in one sentence.

        `clustered_by` is the column that tells the `clusters`; where it is None, they are the examples.
        """
        found, column = self._rows("pairs"), self._cluster_column()
        family = sum(pair["p"] is not None for pair in found)
        return [
            pair
            | {"clustered_by": None if pair["clusters"] is None else column}
            | {"verdict": self._verdict(pair, family)}
            for pair in found
        ]

    @property
    def ranking(self) -> list[dict[str, Any]]:
        """For three evaluations and more: by metric the best first, over the rows that all have."""
        return self._rows("ranking")

    @property
    def left_out(self) -> list[dict[str, Any]]:
        """The declared metrics that are not compared: `scorer`, `metric`, `signature` and the `reason`."""
        return list(self.manifest["spec"].get("left_out", ()))

    def flips(self) -> list[dict[str, Any]]:
        """The examples won and lost: the first of each pair, or those that gained and lost most.

        Returns:
            By row `pair` (its place in `pairs`), `flip` (`won` or `lost`), both `_index_`, `replication` and values,
            and what was asked and answered: `id`, `input`, `expected`, `responses_a`, `responses_b`.
        """
        found, pairs = self._rows("flips"), self._rows("pairs")
        wanted: dict[int, set[tuple[int, int]]] = {}
        for flip, side in itertools.product(found, "ab"):
            evaluation = pairs[flip["pair"]][side]
            wanted.setdefault(evaluation, set()).add((flip[f"index_{side}"], flip["replication"]))
        told = {evaluation: self._asked(evaluation, keys) for evaluation, keys in wanted.items()}
        return [flip | _told(flip, pairs[flip["pair"]], told) for flip in found]

    def to_dict(self) -> dict[str, Any]:
        """All there is to say, as JSON-like data."""
        return {
            "id": self.id,
            "digest": self.digest,
            "confidence": self.confidence,
            "evaluations": [
                {"id": id, "name": _name(self.store, id), "label": label}
                for id, label in zip(self.evaluations, self.labels, strict=True)
            ],
            "pairs": self.pairs,
            "ranking": self.ranking,
            "left_out": self.left_out,
            "flips": self.flips(),
        }

    def _verdict(self, pair: Mapping[str, Any], family: int) -> str:
        a, b = self.evaluations[pair["a"]], self.evaluations[pair["b"]]
        return same(pair, self.labels, a) if a == b else verdict(pair, self.labels, self.confidence, family)

    def _rows(self, table: str) -> list[dict[str, Any]]:
        return pa.Table.from_batches(  # type: ignore[no-any-return]
            self.store.read("comparisons", self.id, table), _TABLES[table]
        ).to_pylist()

    def _cluster_column(self) -> str | None:
        """What the evaluations' datasets call the clusters; None unless all declare some."""
        try:
            datasets = [dataset_of(Evaluation(self.store, id)) for id in self.evaluations]
        except NotFound:
            return None
        names = [dataset.roles.cluster for dataset in datasets]
        return None if None in names else " and ".join(dict.fromkeys(filter(None, names)))

    def _asked(self, evaluation: int, keys: set[tuple[int, int]]) -> dict[tuple[int, int], dict[str, Any]]:
        try:
            return asked(_run(Evaluation(self.store, self.evaluations[evaluation])), keys)
        except NotFound:
            return {}


def compare(
    *evaluations: Evaluation,
    scorers: str | Sequence[str] | None = None,
    metrics: str | Metric | Measure | Sequence[str | Metric | Measure] | None = None,
    missing: Missing | None = None,
    confidence: float = 0.95,
    flips: int = 3,
    labels: Sequence[str] | None = None,
    name: str | None = None,
    origin: dict[str, Any] | None = None,
    declared: Sequence[Measure] | None = None,
) -> Comparison:
    """Evaluations of one store against one another, row by row; found or made.

    Rows belong together that are of the same example (by its digest) and replication. What only one side has is
    counted and listed. Rows without a score on a side are left out of the pair, with the bounds that leaves; see
    `missing` of the metrics.

    Args:
        evaluations: two or more; the first is what the others are held against.
        scorers: whose scores; all that the evaluations share if not given.
        metrics: objects or names; by default those that the scores were summarised by, as far as they average rows;
            `left_out` tells the others. Where none is known, `accuracy` where all scores are 0 or 1, else a `mean` of
            which nothing says whether higher or lower is better.
        missing: what happens to rows without a score, in place of what the metrics say.
        confidence: of intervals, and of the statement that two differ.
        flips: how many examples of each pair to list as won and as lost.
        labels: what to call the evaluations; by default their names, without what all have in common.
        name: a name for the comparison.
        origin: where the request came from, for provenance.
        declared: how metrics are meant that are not given as objects: their direction, range, column and weights; as in
            the aggregations that summarised the evaluations if not given.

    Raises:
        SpecError: the evaluations share nothing that could be compared.
        DataError: a metric refuses missing rows, and there are some.

    Example:
        >>> from evaluand.data.dataset import Dataset
        >>> from evaluand.evaluation.evaluator import Evaluator
        >>> from evaluand.run.runner import Runner
        >>> data = Dataset.from_rows([{"input": str(i), "expected": str(i)} for i in range(40)])
        >>> runner = Runner()
        >>> tasks = [lambda text: "0" if int(text) < 20 else text, str.strip]
        >>> right = {"right": lambda output, expected: output == expected}
        >>> a, b = (Evaluator().evaluate(runner.run(task, data), right, name=n) for task, n in zip(tasks, ("a", "b")))
        >>> print(compare(a, b))
        accuracy · right: b is better: b − a = +47.5 points [32.9, 62.5]; p < 0.0001
    """
    check_confidence("compare", confidence)
    check_whole_number("compare", "flips", flips, 0)
    if name is not None:
        check_name(name)
    store = _one_store(evaluations)
    if labels is not None:
        _check_labels(labels, len(evaluations))
    known = declared_of(evaluations) if declared is None else declared
    measures = _compared(evaluations, scorers, metrics, missing, known)
    spec = {
        "method": METHOD,
        "evaluations": [e.digest for e in evaluations],
        "runs": [e.manifest["spec"]["run"] for e in evaluations],
        "datasets": [e.manifest["spec"]["dataset"] for e in evaluations],
        "measures": [measure.spec for measure in measures],
        "confidence": float(confidence),
        "flips": flips,
    }
    called = labels_of(labels or [e.name for e in evaluations], [e.id for e in evaluations])
    spec |= {"labels": called}
    if not _listed(metrics) and (left_out := _left_out(evaluations, known, scorers)):
        spec |= {"left_out": left_out}
    id = identity.artifact_id("comparisons", spec)
    found = store.is_sealed("comparisons", id)
    if not found:
        _make(store, id, spec, evaluations, measures, name, provenance(origin) | {"labels": called})
    if name is not None:
        store.refer(name, "comparisons", id)
    done = Receipt(1, kept=1, why="made before") if found else Receipt(1, called=1)
    return Comparison(store, id, done, called)


def find_evaluations(store: Store, text: str) -> list[Evaluation]:
    """The evaluations that a name or id stands for.

    An evaluation stands for itself, a run for its newest evaluation, an aggregation for all it was made of.

    Raises:
        NotFound: nothing is called so, or it was never evaluated.
        SpecError: it is something that has no evaluations.
    """
    return _evaluations(store, *_found(store, text))


def find_measures(store: Store, texts: Sequence[str]) -> list[Measure] | None:
    """The measures of aggregations that are named, and of what summarised the others; None where none is named."""
    found = [_found(store, text) for text in texts]
    if all(kind != "aggregations" for kind, _ in found):
        return None
    return [
        measure
        for kind, id in found
        for measure in (
            Aggregation(store, id).measures if kind == "aggregations" else declared_of(_evaluations(store, kind, id))
        )
    ]


def _found(store: Store, text: str) -> tuple[str, str]:
    for kind in ("evaluations", "runs", "aggregations"):
        with suppress(NotFound):
            return resolve(store, text, kind)
    kind, id = resolve(store, text)
    raise SpecError(f"{text!r} is {kind[:-1]} {id[:12]}; name evaluations, runs or an aggregation to compare")


def _evaluations(store: Store, kind: str, id: str) -> list[Evaluation]:
    if kind == "runs":
        made = (Evaluation(store, e) for e in store.ids("evaluations") if store.is_sealed("evaluations", e))
        of_run = [e for e in made if e.manifest["provenance"]["run"] == id]
        if not of_run:
            file = (store.manifest(kind, id)["provenance"].get("origin") or {}).get("experiment")
            how = "grade it:" if file else "grade it by an experiment file that has its task and scorers:"
            raise SpecError(
                f"run {id[:12]} was not evaluated yet",
                python="see Evaluator.evaluate",
                command=f"{how} evaluand run {quote(file) if file else 'FILE'}",
            )
        return [max(of_run, key=lambda e: str(e.manifest["created"]))]
    found = [id] if kind == "evaluations" else store.manifest(kind, id)["provenance"]["evaluations"]
    for e in found:
        if not store.is_sealed("evaluations", e):
            raise SpecError(
                f"evaluation {e[:12]} is not finished",
                python="resume it before it is compared",
                command=f"go on with: evaluand resume {e[:12]}",
            )
    return [Evaluation(store, e) for e in found]


def _compared(
    evaluations: Sequence[Evaluation],
    scorers: str | Sequence[str] | None,
    metrics: str | Metric | Measure | Sequence[str | Metric | Measure] | None,
    missing: Missing | None,
    declared: Sequence[Measure],
) -> list[Measure]:
    """What is compared: each metric on each scorer.

    Raises:
        SpecError: a scorer is not shared, or there is nothing to average.
    """
    shared = [s for s in evaluations[0].scorers if all(s in e.scorers for e in evaluations)]
    wanted = _listed(scorers) or shared
    for scorer in wanted:
        if scorer not in shared:
            if not isinstance(scorer, str):
                raise SpecError(f"scorers must be the names of some, not {scorer!r}")
            raise SpecError(
                f"scorer {scorer!r} is not in all evaluations{nearest(scorer, shared)};"
                f" they share {', '.join(shared) or 'none'}"
            )
    given = _listed(metrics)
    if not wanted:
        raise SpecError("the evaluations share no scorer; evaluate both runs by the same scorers")
    found = list(_given(given, wanted, declared) if given else _usual(evaluations, wanted, declared))
    if not found:
        raise SpecError(f"no scorer gave numbers: {', '.join(wanted)}; name a metric that reads another column")
    if missing is not None:
        found = [dataclasses.replace(m, metric=dataclasses.replace(m.metric, missing=missing)) for m in found]
    distinct: dict[tuple[str, str], Measure] = {}
    for measure in found:  # the same test twice would count twice in its family
        distinct.setdefault((measure.scorer, _definition(measure.metric)), measure)
    return list(distinct.values())


def _listed(given: Any) -> list[Any]:
    """What was given, one or several."""
    return list(given) if isinstance(given, list | tuple) else [] if given is None else [given]


def declared_of(evaluations: Iterable[Evaluation]) -> list[Measure]:
    """The measures that evaluations were summarised by: a store knows by them what their scores mean."""
    summaries = [summary for evaluation in evaluations if (summary := summary_of(evaluation))]
    return [measure for summary in {s.id: s for s in summaries}.values() for measure in summary.measures]


def _given(
    metrics: Iterable[str | Metric | Measure], scorers: Sequence[str], declared: Sequence[Measure]
) -> Iterator[Measure]:
    for metric in metrics:
        if isinstance(metric, Measure):
            yield metric
        elif isinstance(metric, str):
            for scorer in scorers:
                alike = (m for m in declared if m.scorer == scorer and metric in (m.metric.kind, *m.called))
                own = [Measure(scorer, m.metric) for m in alike]
                yield from own or [Measure(scorer, metric_of(metric))]
        else:
            yield from (Measure(scorer, metric) for scorer in scorers)


def metric_of(kind: str) -> Metric:
    """The metric of a name, with its defaults; without a direction where that is a parameter, which nobody gave.

    Raises:
        SpecError: there is none, or it has no defaults.
    """
    found = registry.find("metrics", kind)
    unknown = {field.name: None for field in dataclasses.fields(found) if field.name == "direction"}
    return registry.by_default("metrics", kind, **unknown)  # type: ignore[no-any-return]


def _usual(evaluations: Sequence[Evaluation], scorers: Iterable[str], declared: Sequence[Measure]) -> Iterator[Measure]:
    """What the scores were summarised by; else accuracy where all are 0 or 1, and the mean of other numbers."""
    for scorer in scorers:
        own = [Measure(scorer, measure.metric) for measure in _asked_for(declared) if measure.scorer == scorer]
        if suiting := [measure for measure in own if _why_not(measure, evaluations) is None]:
            yield from suiting
            continue
        values = [b.column(0).drop_null() for e in evaluations for b in e.batches(scorer, ["value"])]
        if any(len(part) for part in values):
            binary = all(pc.all(pc.is_in(part, pa.array([0.0, 1.0]))).as_py() is not False for part in values)
            usual = "accuracy" if binary else "mean"
            if own:
                kinds = ", ".join(dict.fromkeys(measure.metric.kind for measure in own))
                told = f"{scorer}: {kinds} as declared cannot be compared row by row"
                warnings.warn(f"{told}; a plain {usual} of the values is instead", EvaluandWarning, stacklevel=2)
            yield from ranged([Measure(scorer, metric_of(usual))], ranges_in(evaluations))


def _asked_for(declared: Iterable[Measure]) -> Iterator[Measure]:
    """The metrics among some measures, without those that only a criterion of fairness is made of."""
    return (measure for measure in declared if measure.criterion is None)


def _why_not(measure: Measure, evaluations: Sequence[Evaluation]) -> str | None:
    """Why evaluations cannot be compared by a measure: they lack what it reads, or their rows differences by it."""
    metric = measure.metric
    try:
        for e in evaluations:
            check_measures([measure], {name: e.columns(name) for name in e.scorers}, dataset_of(e).roles)
    except SpecError:
        return "not all evaluations have what is read"
    if not metric.averages:
        return "no mean of one number per row"
    return None if unpairable(metric) is None else "each of several responses is a row"


def _left_out(
    evaluations: Sequence[Evaluation],
    declared: Sequence[Measure],
    scorers: str | Sequence[str] | None,
) -> list[dict[str, str]]:
    """The declared metrics that cannot be compared, each once, with the reason."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for measure in _asked_for(declared):
        key = measure.scorer, _definition(measure.metric)
        reason = _why_not(Measure(measure.scorer, measure.metric), evaluations)
        if reason is not None and (not scorers or measure.scorer in _listed(scorers)):
            about = {"scorer": key[0], "metric": measure.metric.kind, "signature": key[1]}
            found.setdefault(key, {**about, "reason": reason})
    return [*found.values()]


def _check_labels(labels: Any, n: int) -> None:
    if not isinstance(labels, list | tuple) or len(labels) != n or not all(isinstance(one, str) for one in labels):
        raise SpecError(f"labels must be a list of texts, one for each of the {n} evaluations, not {labels!r}")


def _one_store(evaluations: Sequence[Evaluation]) -> Store:
    if not all(isinstance(e, Evaluation) for e in evaluations):
        raise SpecError("give evaluations to compare; see Evaluator.evaluate and the results of an experiment")
    if len(evaluations) < 2:
        raise SpecError("a comparison needs two evaluations or more")
    store = evaluations[0].store
    for evaluation in evaluations:
        if not exists(store, "evaluations", evaluation.id):
            raise SpecError(f"{evaluation!r} is in another store; evaluations are compared in one store")
    return store


def _make(
    store: Store,
    id: str,
    spec: dict[str, Any],
    evaluations: Sequence[Evaluation],
    measures: Sequence[Measure],
    name: str | None,
    origin: dict[str, Any],
) -> None:
    tables = _tables(evaluations, measures, spec["confidence"], spec["flips"])
    batches = {table: pa.RecordBatch.from_pylist(tables[table], schema) for table, schema in _TABLES.items()}
    with drafted(store, "comparisons", id) as draft:
        for table, batch in batches.items():
            draft.append(table, batch)
        digest = tables_digest(batch.to_pylist() for batch in batches.values())
        counts = {table: batch.num_rows for table, batch in batches.items()}
        made_from = origin | {"evaluations": [e.id for e in evaluations]}
        draft.seal(at_once("comparisons", id, spec, name, digest=digest, counts=counts, provenance=made_from))


def tables_digest(tables: Iterable[list[dict[str, Any]]]) -> str:
    """32 hexadecimal digits that stand for the rows of some tables."""
    state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
    for table in tables:
        state.update(identity.encode(table))
    return state.hexdigest()


def stored_digest(store: Store, id: str) -> tuple[str, dict[str, int]]:
    """The digest and counts of a stored comparison's rows, as they are now."""
    comparison = Comparison(store, id)
    tables = {table: comparison._rows(table) for table in _TABLES}
    return tables_digest(tables.values()), {table: len(found) for table, found in tables.items()}


def _tables(
    evaluations: Sequence[Evaluation], measures: Sequence[Measure], confidence: float, flips: int
) -> dict[str, list[dict[str, Any]]]:
    pairs: list[dict[str, Any]] = []
    flipped: list[dict[str, Any]] = []
    ranked: list[dict[str, Any]] = []
    for measure in measures:
        found = paired(evaluations, measure.scorer, measure.metric)
        for key in sorted(found.keys, key=lambda key: key[0] or "") or [(None,)]:
            chosen = found.of(found.group == found.keys.index(key)) if found.keys else found
            head = _head(measure.scorer, found.metric, key[0])
            for a, b in itertools.combinations(range(len(evaluations)), 2):
                flipped += [{"pair": len(pairs)} | flip for flip in _flips(chosen, a, b, measure.metric, flips)]
                numbers = _plain(dataclasses.asdict(difference(chosen, a, b, measure.metric, confidence)))
                ids_ = {"only_a": _ids(evaluations[a], chosen, a, b), "only_b": _ids(evaluations[b], chosen, b, a)}
                pairs.append(head | {"a": a, "b": b} | numbers | ids_)
            ranked += _ranked(head, chosen, measure.metric) if len(evaluations) > 2 else []
    p = np.array([math.nan if pair["p"] is None else pair["p"] for pair in pairs])
    for pair, by_holm, by_bh in zip(pairs, holm(p).tolist(), benjamini_hochberg(p).tolist(), strict=True):
        pair |= _plain({"p_holm": by_holm, "p_benjamini_hochberg": by_bh})
    return {"pairs": pairs, "ranking": _lettered(ranked, pairs, confidence), "flips": flipped}


def _head(scorer: str, metric: Metric, target: str | None) -> dict[str, Any]:
    return {
        "scorer": scorer,
        "metric": metric.kind,
        "signature": _definition(metric),
        "direction": metric.direction,
        "share": metric.row_range == (0.0, 1.0),
        "target": target,
    }


def _definition(metric: Metric) -> str:
    """The signature but for the interval, which a comparison has of its own."""
    return metric.signature.rpartition(" interval=")[0] if metric.interval else metric.signature


def _plain(numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {n: None if isinstance(v, float) and not math.isfinite(v) else v for n, v in numbers.items()}


def _ids(evaluation: Evaluation, found: PairedRows, a: int, b: int) -> list[str]:
    """The ids of the first examples that only side `a` has."""
    indices = np.unique(found.index[a, only(found, a, b)])[:SHOWN_IDS].tolist()
    try:
        told = examples_at(_run(evaluation), indices)
    except NotFound:
        told = {}
    return [str(told[i]["id"]) if i in told else f"{INDEX} {i}" for i in indices]


def _flips(found: PairedRows, a: int, b: int, metric: Metric, at_most: int) -> Iterator[dict[str, Any]]:
    """The first rows lost and won, or where values are not 0 and 1 those that changed most."""
    used = found.of(found.known[a] & found.known[b])
    apart = used.value[b] - used.value[a]
    gain = -apart if metric.direction == "lower" else apart
    values = used.value[[a, b]]
    by_size = np.zeros(len(gain)) if ((values == 0) | (values == 1)).all() else -np.abs(gain)
    order = np.lexsort((used.replication, used.index[a], by_size))
    for flip, sign in (("lost", -1), ("won", 1)):
        for row in order[np.sign(gain[order]) == sign][:at_most].tolist():
            yield {
                "flip": flip,
                "index_a": int(used.index[a, row]),
                "index_b": int(used.index[b, row]),
                "replication": int(used.replication[row]),
                "value_a": float(used.value[a, row]),
                "value_b": float(used.value[b, row]),
            }


def _ranked(head: Mapping[str, Any], found: PairedRows, metric: Metric) -> list[dict[str, Any]]:
    """The sides over the rows that all have, best first."""
    common = found.of(np.all(found.known, axis=0))
    values = [mean_of(common, common.value[side], metric) for side in range(len(common.status))]
    worst_first = metric.direction == "lower"
    order = sorted(range(len(values)), key=lambda side: values[side] if worst_first else -values[side])
    key = {name: head[name] for name in ("scorer", "signature", "target")}
    n = len(common.group)
    return [key | _plain({"evaluation": side, "value": values[side]}) | {"n": n} for side in order]


def _lettered(ranked: list[dict[str, Any]], pairs: Sequence[dict[str, Any]], confidence: float) -> list[dict[str, Any]]:
    keys = [tuple(row[name] for name in ("scorer", "signature", "target")) for row in ranked]
    for key in dict.fromkeys(keys):
        places = [row for row, own in zip(ranked, keys, strict=True) if own == key]
        shown = [
            frozenset((pair["a"], pair["b"]))
            for pair in pairs
            if (pair["scorer"], pair["signature"], pair["target"]) == key and is_shown(pair, confidence)
        ]
        found = letters([row["evaluation"] for row in places], shown)
        for row in places:
            row["letters"] = found[row["evaluation"]]
    return ranked


def _told(flip: Mapping[str, Any], pair: Mapping[str, Any], told: Mapping[int, Any]) -> dict[str, Any]:
    """What was asked and what both answered."""
    a, b = (told[pair[side]].get((flip[f"index_{side}"], flip["replication"]), {"responses": None}) for side in "ab")
    about = {name: a.get(name) for name in ("id", "input", "expected")}
    return about | {"responses_a": a["responses"], "responses_b": b["responses"]}


def what(row: Mapping[str, Any]) -> str:
    """The metric, scorer and target of a row of pairs or of the ranking."""
    metric = row.get("metric") or str(row["signature"]).split(" ", 1)[0]
    return " · ".join(part for part in (metric, row["scorer"], row["target"]) if part is not None)


def labels_of(names: Sequence[str | None], ids_: Sequence[str]) -> list[str]:
    """Short labels that tell evaluations apart: `exp/a` and `exp/b` are `a` and `b`.

    Example:
        >>> labels_of(["exp/a", "exp/b", None], ["11" * 16, "22" * 16, "33" * 16])
        ['exp/a', 'exp/b', '333333333333']
    """
    known = [name or id[:12] for name, id in zip(names, ids_, strict=True)]
    heads = {label.rpartition("/")[0] for label in known}
    short = [label.rpartition("/")[2] for label in known] if len(heads) == 1 else known
    seen: Counter[str] = Counter()
    labels = []
    for label in short:  # runs with the same responses share one evaluation, and so its name
        seen[label] += 1
        labels.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return labels


def _name(store: Store, id: str) -> str | None:
    try:
        return store.manifest("evaluations", id)["name"]  # type: ignore[no-any-return]
    except NotFound:
        return None


def _run(evaluation: Evaluation) -> Run:
    return Run(evaluation.store, evaluation.manifest["provenance"]["run"])
