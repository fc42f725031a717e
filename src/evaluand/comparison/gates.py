"""Gates: rules that a result must fulfil, written in words and checked by number.

    accuracy >= 0.9                                  the value itself; also <=, > and <
    accuracy >= 0.88 at 95%                          sure to 95 %: the one-sided bound of the value
    accuracy better than base                        the one-sided 95 % bound of the difference lies above 0
    accuracy not worse than base by 0.02             … above -0.02; `at 99%` after either says another level
    accuracy(answer)[topic=algebra] >= 0.8           of one scorer, in one group
    f_beta(strict, label=PER) >= 0.5                   of several of one kind the one that tables call f_beta(label=PER)
    equalized_odds difference by sex <= 0.1          how far groups lie apart, by a metric or a criterion of fairness

`at` always means one thing: the gate passes wrongly at most so rarely, in 5 of 100 cases at 95 %. That holds only about
for a value that is no share of independent rows (its message says `about`), and for a difference of values without a
known range. Names with blanks or signs stand in quotes. `baseline` is the first evaluation of a comparison.

A value is taken over the rows that have a score, and its message counts those that have none. Against a baseline, rows
without a score count as wrong (metrics without a worst value cannot tell, and the gate fails): a system that crashes on
what it cannot do is not as good as one that answers. What is undefined fails.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, NoReturn, get_args

import numpy as np

from evaluand.aggregation.aggregator import Measure, dataset_of, held_as, is_repeated, measured, shards
from evaluand.aggregation.groups import MetricRow, summarise
from evaluand.comparison.comparing import declared_of, find_evaluations, metric_of
from evaluand.comparison.difference import Sample
from evaluand.comparison.pairing import PairedRows, paired, unpairable
from evaluand.core.errors import DataError, NotFound, SpecError
from evaluand.core.identity import encode
from evaluand.core.registry import nearest
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import Metric, Missing
from evaluand.metrics.base.signature import distinguishing_words, words_of
from evaluand.metrics.stats.disparity import AT_MOST, Kind
from evaluand.metrics.stats.intervals import clopper_pearson
from evaluand.store.store import Store

BASELINE: Final = "baseline"
BETTER: Final = "better than"
NOT_WORSE: Final = "not worse than"
LEVEL: Final = 0.95

_COMPARED: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True)
class Gate:
    """One rule.

    Attributes:
        text: as it was written.
        metric: the metric's kind, what the problem scored calls it, or of a disparity a criterion of fairness.
        scorer: whose scores; None is the only one.
        where: attribute → value: only this group.
        parameters: name → value: of several metrics of the kind the one that has these.
        relation: `>=`, `<=`, `>`, `<`, `better than` or `not worse than`.
        number: the threshold, or by how much it may be worse.
        baseline: what it is held against.
        level: how sure; None asks for the value itself.
        disparity: how far groups lie apart, in place of the value; see `disparity.Kind`.
        by: the attributes these groups are made by.
    """

    text: str
    metric: str
    relation: str
    number: float = 0.0
    baseline: str | None = None
    level: float | None = None
    scorer: str | None = None
    where: tuple[tuple[str, str], ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    disparity: str | None = None
    by: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Gate:
        """The gate a text says.

        Raises:
            SpecError: it says none; with the place and what is expected there.

        Example:
            >>> gate = Gate.parse("accuracy(answer)[topic=algebra] not worse than base by 0.02 at 95%")
            >>> gate.scorer, gate.where, gate.relation, gate.baseline, gate.number, gate.level
            ('answer', (('topic', 'algebra'),), 'not worse than', 'base', 0.02, 0.95)
            >>> Gate.parse("accuracy => 0.9")
            Traceback (most recent call last):
            evaluand.SpecError: gate 'accuracy => 0.9': at 10 stands '=', but >=, <=, >, <, ... is expected
        """
        return _Parser(text).gate()


@dataclass(frozen=True)
class GateResult:
    """Whether a gate holds for an evaluation.

    Attributes:
        gate: the rule.
        subject: what the evaluation is called.
        passed: whether it holds.
        message: the number it was decided by, with its counts, or why there is none.
        facts: the same as data.
    """

    gate: Gate
    subject: str
    passed: bool
    message: str
    facts: Mapping[str, Any]


def check_gates(
    gates: Sequence[str | Gate],
    evaluations: Mapping[str, Evaluation],
    baselines: Mapping[str, Evaluation] | None = None,
    *,
    measures: Sequence[Measure] | None = None,
    scorer: str | None = None,
    missing: Missing | None = None,
) -> list[GateResult]:
    """Whether gates hold: each for each evaluation.

    Args:
        gates: rules, as text.
        evaluations: label → what must fulfil them.
        baselines: label → what they may be held against, besides the evaluations and what the store has by name; the
            first is `baseline`.
        measures: metrics with parameters of their own, found by their kind and scorer; those that each evaluation,
            or else its baseline, was summarised by if not given.
        scorer: the scorer of gates that name none.
        missing: what happens to rows without a score, in place of what gates do by themselves.

    Raises:
        SpecError: a gate is none, or names what is not there.
    """
    parsed = [gate if isinstance(gate, Gate) else Gate.parse(gate) for gate in gates]
    others = dict(baselines or {})
    found = {label: _declared(evaluation, others, measures) for label, evaluation in evaluations.items()}
    results = []
    for gate in parsed:
        subjects = [label for label in evaluations if label != gate.baseline]
        if not subjects:
            raise SpecError(f"gate {gate.text!r}: holds an evaluation against itself; name another baseline")
        for label in subjects:
            chosen = _scorer(gate, evaluations[label].scorers, scorer)
            metrics = _metrics(gate, chosen, found[label], missing)
            base = _baseline(gate, evaluations[label], evaluations, others)
            results.append(_checked(gate, label, evaluations[label], base, chosen, metrics, missing))
    return results


def _declared(
    evaluation: Evaluation, baselines: Mapping[str, Evaluation], measures: Sequence[Measure] | None
) -> Sequence[Measure]:
    return measures if measures is not None else declared_of([evaluation]) or declared_of(baselines.values())


def check_fit(
    gates: Sequence[Gate],
    scorers: Sequence[str],
    measures: Sequence[Measure],
    attributes: Sequence[str],
    baselines: Sequence[str],
    store: Store,
) -> None:
    """Stops at gates that could not be checked, before there is anything to check.

    Args:
        baselines: what will be there to be held against, besides what the store has by name.

    Raises:
        SpecError: a metric, scorer, attribute or baseline is not there, or the metric never has the number, bound or
            difference that is asked for.
    """
    for gate in gates:
        scorer = _scorer(gate, scorers, None)
        _metrics(gate, scorer, measures)
        _check_attributes(gate, attributes)
        if gate.baseline is not None and gate.baseline not in baselines:
            base = _stored(gate, gate.baseline, store, baselines)
            _scorer(dataclasses.replace(gate, scorer=scorer), base.scorers, None)
            _check_attributes(gate, dataset_of(base).roles.attributes)


def _check_attributes(gate: Gate, attributes: Sequence[str]) -> None:
    lacking = [name for name in (*dict(gate.where), *gate.by) if name not in attributes]
    if lacking:
        raise SpecError(f"gate {gate.text!r}: {lacking[0]!r} is no attribute{nearest(lacking[0], attributes)}")


def _checked(
    gate: Gate,
    label: str,
    evaluation: Evaluation,
    base: Evaluation | None,
    scorer: str,
    metrics: Sequence[Metric],
    missing: Missing | None,
) -> GateResult:
    metric = metrics[0]
    try:
        if gate.disparity is not None:
            found = list(_disparities(gate, evaluation, scorer, [_with(one, missing) for one in metrics]))
        elif base is None:
            found = list(_values(gate, evaluation, scorer, _with(metric, missing)))
        else:
            fill = "wrong" if math.isfinite(metric.ends[0]) else metric.missing
            found = list(_differences(gate, base, evaluation, scorer, _with(metric, missing or fill)))
    except DataError as error:
        found = [_Found(False, str(error), {})]
    if not found:
        found = [_Found(False, "there are no rows", {})]
    passed = all(one.passed for one in found)
    message = "; ".join(one.message for one in found if one.passed == passed)
    if base is not None and base.id == evaluation.id and any(not one.passed and one.facts for one in found):
        message += f"; {_alike(gate)}"
    return GateResult(gate, label, passed, message, {"values": [one.facts for one in found]})


def _alike(gate: Gate) -> str:
    """Why a gate fails where both sides are one evaluation."""
    if gate.relation == BETTER:
        return "both are the same evaluation, which is not better than itself"
    few = f"so few rows do not rule out that others would differ by {gate.number:g}" if gate.number else "give a margin"
    return f"both are the same evaluation, with the same responses and grades, but {few}"


class _Found(NamedTuple):
    """What was found for one target."""

    passed: bool
    message: str
    facts: dict[str, Any]


def _values(gate: Gate, evaluation: Evaluation, scorer: str, metric: Metric) -> Iterator[_Found]:
    """A value against a threshold, by target."""
    by = tuple(name for name, _ in gate.where)
    dataset = dataset_of(evaluation)
    _check_attributes(gate, dataset.roles.attributes)
    if gate.level is not None:
        metric = _at(gate, metric)
    found = summarise(
        shards(evaluation, dataset, scorer, by), [metric], [held_as(by)], repeated=is_repeated(evaluation)
    )
    rows = [row for row in found if [*row.by.values()] == [value for _, value in gate.where]]
    for row in rows:
        if gate.level is not None and _is_exact(row):
            low, high = clopper_pearson(row.data["correct"], row.data["n"], gate.level)
            row = row._replace(low=low, high=high)
        end = None if gate.level is None else "low" if gate.relation in (">=", ">") else "high"
        number = row.value if end is None else getattr(row, end)
        about = "about " if end and not _is_exact(row) else ""
        shown = f"{_bound_name(end, gate.level)}{about}{_target(row.target)}{number:.4g}"
        facts = {name: _plain(getattr(row, name)) for name in ("target", "value", "low", "high", "worst", "best")}
        counts = {name: getattr(row, name) for name in ("n", "n_scored", "n_failed", "n_abstained", "n_skipped")}
        if math.isnan(number):
            why = row.reason or ("the metric has no interval" if end else "it is undefined")
            yield _Found(False, f"undefined: {why}; {_counted(row)}", facts | counts)
        else:
            passed = _COMPARED[gate.relation](number, gate.number)
            yield _Found(passed, f"{shown}; {_counted(row)}", facts | counts)


def _disparities(gate: Gate, evaluation: Evaluation, scorer: str, metrics: Sequence[Metric]) -> Iterator[_Found]:
    """How far groups lie apart against a threshold, by target."""
    dataset = dataset_of(evaluation)
    _check_attributes(gate, dataset.roles.attributes)
    kind: Kind = gate.disparity  # type: ignore[assignment]
    nearer = kind.startswith("difference" if gate.relation in (">=", ">") else "ratio")  # the end that errs more often
    chosen = metrics if gate.level is None else [_at(gate, one, AT_MOST if nearer else 0.5) for one in metrics]
    measures = [Measure(scorer, metric, (gate.by,), (kind,), gate.metric) for metric in chosen]
    found = measured(measures, partial(shards, evaluation, dataset), repeated=is_repeated(evaluation), drawn=False)
    overall = {row.target: row for _, row in found.values if not row.by}
    for _, row in found.disparities:
        end = None if gate.level is None else "low" if gate.relation in (">=", ">") else "high"
        number = row.value if end is None else getattr(row, end)
        facts = {name: _plain(getattr(row, name)) for name in ("target", "value", "low", "high", "n_groups")}
        facts |= {"lowest": row.lowest, "highest": row.highest}
        told = _counted(overall[row.target])
        if math.isnan(number):
            yield _Found(False, f"undefined: {row.reason or 'it is undefined'}; {told}", facts)
            continue
        groups = f"from {_group(row.lowest)} to {_group(row.highest)}; " if row.lowest and row.highest else ""
        about = "about " if end else ""
        shown = f"{_bound_name(end, gate.level)}{about}{_target(row.target)}{number:.4g}; {groups}{told}"
        if row.small:
            shown += f"; few rows: {' | '.join(map(_group, row.small))}"
        yield _Found(_COMPARED[gate.relation](number, gate.number), shown, facts)


def _group(by: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name}={value}" for name, value in by.items())


def _differences(gate: Gate, base: Evaluation, evaluation: Evaluation, scorer: str, metric: Metric) -> Iterator[_Found]:
    """A difference to the baseline against a margin, by target."""
    rows = paired([base, evaluation], scorer, metric, dict(gate.where))
    level = gate.level or LEVEL
    for place, key in enumerate(rows.keys):
        yield _against(gate, rows.of(rows.group == place), key[0], metric, level)


def _against(gate: Gate, rows: PairedRows, target: str | None, metric: Metric, level: float) -> _Found:
    asked, known = np.all(rows.asked, axis=0), np.all(rows.known, axis=0)
    sample = Sample.of(rows.of(known), 0, 1, metric)
    apart, (low, high), (lower, upper) = sample.value, sample.interval(level), sample.bounds(level)
    end = lower if metric.direction == "higher" else upper
    counts = {
        "n": int(asked.sum()),
        "n_used": int(known.sum()),
        "n_baseline_missing": int((asked & rows.unscored[0]).sum()),
        "n_missing": int((asked & rows.unscored[1]).sum()),
        "n_only_baseline": int(((rows.status[0] >= 0) & (rows.status[1] < 0)).sum()),
        "n_only": int(((rows.status[1] >= 0) & (rows.status[0] < 0)).sum()),
    }
    facts = {"target": target, "difference": _plain(apart), "bound": _plain(end), "level": level}
    facts |= {"low": _plain(low), "high": _plain(high)} | counts
    told = _told(counts)
    if counts["n"] in (counts["n_baseline_missing"], counts["n_missing"]):
        return _Found(False, f"undefined: one side has no score at all; {told}", facts)
    if metric.missing == "leave_out" and counts["n_used"] < counts["n"] and not math.isfinite(metric.ends[0]):
        return _Found(False, f"undefined: rows without a score have no worst value; {told}", facts)
    if math.isnan(end):
        return _Found(False, f"undefined: the difference has no interval; {told}", facts)
    margin = gate.number if gate.relation == NOT_WORSE else 0.0
    passed = end > -margin if metric.direction == "higher" else end < margin
    which = "low" if metric.direction == "higher" else "high"
    shown = f"difference {_target(target)}{apart:+.4g}, {_bound_name(which, level)}{end:+.4g}; {told}"
    near = low if which == "low" else -high
    if passed and -margin >= near:
        shown += f"; the {_interval(low, high, level)} of a comparison is two-sided, and so wider than the bound"
    elif (end if which == "low" else -end) < near:
        shown += f"; beyond the {_interval(low, high, level)} of a comparison, {_what_a_bound_heeds(sample)}"
    return _Found(passed, shown, facts)


def _interval(low: float, high: float, level: float) -> str:
    return f"{100 * level:g}% interval [{low:+.4g}, {high:+.4g}]"


def _what_a_bound_heeds(sample: Sample) -> str:
    """Why a bound, so as to err at most as rarely as it says, may lie farther out than a two-sided interval."""
    if sample.independent and sample.binary:
        return "which of few rows that differ is a little too narrow"
    unit = "row" if sample.clusters == len(sample.apart) else "cluster"
    return f"which goes by the {unit}s seen: the bound also heeds one not seen that is apart by {sample.span:.4g}"


def _baseline(
    gate: Gate, evaluation: Evaluation, evaluations: Mapping[str, Evaluation], others: Mapping[str, Evaluation]
) -> Evaluation | None:
    name = gate.baseline
    if name is None:
        return None
    known = {**evaluations, **others}
    if name in known:
        return known[name]
    if name == BASELINE and others:
        return next(iter(others.values()))
    return _stored(gate, name, evaluation.store, [*known, *([BASELINE] if others else [])])


def _stored(gate: Gate, name: str, store: Store, known: Sequence[str]) -> Evaluation:
    """The baseline that the store has by name."""
    try:
        found = find_evaluations(store, name)
    except NotFound:
        stored = (ref.name for ref in store.refs() if ref.kind in ("evaluations", "runs"))
        hint = nearest(name, [*known, *stored]) or f"; there are {', '.join(known)}"
        raise SpecError(f"gate {gate.text!r}: no baseline is called {name!r}{hint}") from None
    if len(found) > 1:
        raise SpecError(f"gate {gate.text!r}: {name!r} stands for {len(found)} evaluations; name one")
    return found[0]


def _scorer(gate: Gate, known: Sequence[str], usual: str | None) -> str:
    name = gate.scorer or usual
    if name is None and len(known) == 1:
        return known[0]
    if name is None:
        raise SpecError(f"gate {gate.text!r}: say whose scores: {gate.metric}({' | '.join(known)}) …")
    if name not in known:
        raise SpecError(
            f"gate {gate.text!r}: no scorer is called {name!r}{nearest(name, known)}; there are {', '.join(known)}"
        )
    return name


def _metrics(gate: Gate, scorer: str, measures: Sequence[Measure], missing: Missing | None = None) -> list[Metric]:
    """The metric that a gate is about; of a criterion of fairness all that it is made of."""
    own = [measure for measure in measures if measure.scorer == scorer]
    of_criterion = [measure.metric for measure in own if measure.criterion == gate.metric]
    found = _of_criterion(gate, scorer, of_criterion) if of_criterion else [_metric(gate, scorer, own, missing)]
    for metric in found:
        _check_number(gate, metric)
        _check_decidable(gate, scorer, metric)
    return found


def _of_criterion(gate: Gate, scorer: str, metrics: Sequence[Metric]) -> list[Metric]:
    if gate.disparity is None:
        raise SpecError(
            f"gate {gate.text!r}: {gate.metric} is no value but a criterion; say which of its disparities is meant:"
            f" {gate.metric} difference by …"
        )
    of_kind: dict[str, dict[str, Metric]] = {}
    for metric in metrics:
        of_kind.setdefault(metric.kind, {})[metric.signature] = metric
    return [_only(gate, scorer, _meant(gate, scorer, alike)) for alike in of_kind.values()]


def _metric(gate: Gate, scorer: str, measures: Sequence[Measure], missing: Missing | None) -> Metric:
    alike = [measure.metric for measure in measures if gate.metric in (measure.metric.kind, *measure.called)]
    meant = _meant(gate, scorer, {metric.signature: metric for metric in alike})
    if gate.baseline is not None and all(math.isfinite(metric.ends[0]) for metric in meant):
        missing = missing or "wrong"
    declared = {_with(metric, missing).signature: metric for metric in meant}  # as the gate will take them
    if declared:
        return _only(gate, scorer, [*declared.values()])
    try:
        return metric_of(gate.metric)
    except SpecError as error:
        known = [*dict.fromkeys(name for measure in measures for name in (*measure.called, measure.criterion) if name)]
        near = nearest(gate.metric, known)
        hint = f"; what was scored is also called {', '.join(known)}" if known else ""
        told = f"no metric is called {gate.metric!r}{near}" if near else f"{error}{hint}"
        raise SpecError(f"gate {gate.text!r}: {told}") from None


def _only(gate: Gate, scorer: str, metrics: Sequence[Metric]) -> Metric:
    if len(metrics) == 1:
        return metrics[0]
    raise SpecError(
        f"gate {gate.text!r}: {gate.metric} of {scorer!r} is declared more than once; say which is meant:"
        f" {', '.join(_calls(gate, scorer, [metric.signature for metric in metrics]))}"
    )


def _meant(gate: Gate, scorer: str, metrics: Mapping[str, Metric]) -> list[Metric]:
    """Of the metrics of a kind, by signature, those that have a gate's parameters; just one if tables call it so."""
    apart, given = distinguishing_words([*metrics]), dict(gate.parameters)
    having = [s for s in metrics if all(_is(words_of(s).get(name), value) for name, value in given.items())]
    if given and not having:
        known = f"; there are {', '.join(_calls(gate, scorer, [*metrics]))}" if metrics else ""
        raise SpecError(f"gate {gate.text!r}: no such {gate.metric} is among the metrics of the experiment{known}")
    called = [signature for signature in having if apart[signature].keys() == given.keys()]
    return [metrics[signature] for signature in (called if len(called) == 1 else having)]


def _is(word: str | None, given: str) -> bool:
    """Whether a value in a signature is the one that a gate gives; texts stand there in quotes where they need some."""
    if word is None or word == given:
        return word is not None
    with suppress(ValueError):
        return float(word) == float(given)
    return word == encode(given).decode()


def _calls(gate: Gate, scorer: str, signatures: Sequence[str]) -> Iterator[str]:
    """How a gate calls each of several metrics of a kind."""
    for apart in distinguishing_words(signatures).values():
        words = [_quoted(scorer), *(f"{name}={_quoted(word)}" for name, word in apart.items() if name)]
        yield f"{gate.metric}({', '.join(words)})"


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"""[^\s<>()\[\]=,%"']+|".*\"""", word) else f'"{word}"'


def _check_decidable(gate: Gate, scorer: str, metric: Metric) -> None:
    """Stops at a difference or a bound that the metric never has."""
    if gate.baseline is None:
        if gate.level is not None:
            _at(gate, metric)
        return
    if why := unpairable(metric):
        raise SpecError(f"gate {gate.text!r}: {why}")
    if metric.direction is None:
        raise SpecError(
            f"gate {gate.text!r}: nothing says whether a higher or a lower {metric.kind} of {scorer!r} is better; name"
            f" the metric with its direction under metrics of the experiment and run it: {{kind: {metric.kind},"
            f" scorer: {scorer}, direction: lower}}"
        )


def _check_number(gate: Gate, metric: Metric) -> None:
    """Stops at a threshold that no value can have, and at a margin by which no two values can differ."""
    low, high = metric.range
    if gate.baseline is not None:
        within, told = gate.number <= high - low, f"values of {gate.metric} differ by at most {high - low:g}, never by"
    else:
        what = gate.metric if gate.disparity is None else f"the {gate.disparity} of {gate.metric}"
        if gate.disparity is not None and gate.disparity not in ("min", "max"):
            low, high = (0.0, 1.0) if gate.disparity.startswith("ratio") else (0.0, high - low)
        within, told = low <= gate.number <= high, f"{what} lies between {low:g} and {high:g}, never at"
    if not within:
        hint = f"; did you mean {gate.number / 100:g}?" if (low, high) == (0, 1) and 1 < gate.number <= 100 else ""
        raise SpecError(f"gate {gate.text!r}: {told} {gate.number:g}{hint}")


def _with(metric: Metric, missing: Missing | None) -> Metric:
    return metric if missing is None else dataclasses.replace(metric, missing=missing)


def _at(gate: Gate, metric: Metric, share: float = 0.5) -> Metric:
    """The metric with the interval whose ends are one-sided bounds of the level.

    Args:
        share: of an interval's errors, that its end makes.
    """
    if gate.level is None or not hasattr(metric, "confidence"):
        raise SpecError(f"gate {gate.text!r}: {metric.kind} has no interval; leave out `at …`")
    confidence = 2 * gate.level - 1 if share == 0.5 else 1 - (1 - gate.level) / share
    return dataclasses.replace(metric, confidence=confidence)  # type: ignore[call-arg]


def _is_exact(row: MetricRow) -> bool:
    """Whether the value is a share of independent rows, of which an exact bound is known."""
    return isinstance(row.data, dict) and row.data.keys() == {"correct", "n"}


def _bound_name(end: str | None, level: float | None) -> str:
    return "" if end is None or level is None else f"{'lower' if end == 'low' else 'upper'} {100 * level:g}% bound "


def _target(target: str | None) -> str:
    return "" if target is None else f"({target}) "


def _counted(row: MetricRow) -> str:
    told = [f"{row.n:,} rows: {row.n_scored:,} scored"]
    told += [
        f"{n:,} {word}"
        for n, word in ((row.n_failed, "failed"), (row.n_abstained, "abstained"), (row.n_skipped, "more skipped"))
        if n
    ]
    bounds = "" if row.worst == row.best or math.isnan(row.worst) else f", worst {row.worst:.4g} … best {row.best:.4g}"
    return ", ".join(told) + bounds


def _told(counts: Mapping[str, int]) -> str:
    words = {
        "n_baseline_missing": "without a score in the baseline",
        "n_missing": "without a score",
        "n_only_baseline": "more only in the baseline",
        "n_only": "more not in the baseline",
    }
    return ", ".join([f"{counts['n']:,} pairs", *(f"{counts[n]:,} {word}" for n, word in words.items() if counts[n])])


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


class _Token(NamedTuple):
    kind: str  # word, quoted, sign, end
    text: str
    place: int  # in the gate's text, from 1


_TOKEN = re.compile(
    r"""\s*(?:(?P<sign>>=|<=|[<>()\[\]=,%])|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<word>[^\s<>()\[\]=,%"']+))"""
)


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while text[place:].strip():
        found = _TOKEN.match(text, place)
        if found is None:
            start = len(text) - len(text[place:].lstrip())
            raise SpecError(f"gate {text!r}: at {start + 1} a quotation begins that does not end")
        kind = found.lastgroup or ""
        yield _Token("quoted" if kind in ("double", "single") else kind, found[kind], _start(found, kind) + 1)
        place = found.end()
    yield _Token("end", "", len(text.rstrip()) + 1)


def _start(found: re.Match[str], kind: str) -> int:
    return found.start(kind) - (kind in ("double", "single"))


class _Parser:
    """Reads a gate from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_tokens(text))

    def gate(self) -> Gate:
        metric = self._name("a metric")
        scorer, parameters = self._scorer()
        parts: dict[str, Any] = {"text": self.text, "metric": metric, "scorer": scorer, "parameters": parameters}
        parts["where"] = tuple(self._where())
        if self.tokens[0].kind == "word" and self.tokens[0].text in get_args(Kind):
            parts |= self._disparity(parts)
        if self.tokens[0].text in _COMPARED and self.tokens[0].kind == "sign":
            parts |= {"relation": self._next().text, "number": self._number("a number")}
        elif "disparity" in parts:
            self._expected(", ".join(_COMPARED))
        elif self._takes("better"):
            self._word("than")
            parts |= {"relation": BETTER, "baseline": self._name("the name of a baseline"), "level": LEVEL}
        elif self._takes("not"):
            self._word("worse")
            self._word("than")
            parts |= {"relation": NOT_WORSE, "baseline": self._name("the name of a baseline"), "level": LEVEL}
            self._word("by")
            parts["number"] = self._margin()
        else:
            self._expected(">=, <=, >, <, `better than` or `not worse than`")
        if self._takes("at"):
            parts["level"] = self._level()
        if self.tokens[0].kind != "end":
            self._expected("`at …%` or the end" if "level" not in parts else "the end")
        return Gate(**parts)

    def _disparity(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """`difference by sex, site`, also as tables write it, with a colon after the metric."""
        if before["where"]:
            raise SpecError(f"gate {self.text!r}: a disparity is one between all groups; leave out what stands in []")
        kind = self._next().text
        self._word("by")
        by = [self._name("an attribute")]
        while self._takes(","):
            by.append(self._name("an attribute"))
        return {"metric": before["metric"].removesuffix(":"), "disparity": kind, "by": tuple(by)}

    def _scorer(self) -> tuple[str | None, tuple[tuple[str, str], ...]]:
        """What stands in parentheses: the scorer, the parameters, or both."""
        if not self._takes("("):
            return None, ()
        scorer: str | None = None
        parameters: list[tuple[str, str]] = []
        while True:
            name = self._name("a parameter" if scorer or parameters else "the name of a scorer")
            if scorer or parameters or self.tokens[0].text == "=":
                self._word("=")
                parameters.append((name, self._name("its value")))
            else:
                scorer = name
            if not self._takes(","):
                break
        self._word(")")
        return scorer, tuple(parameters)

    def _where(self) -> Iterator[tuple[str, str]]:
        if not self._takes("["):
            return
        while True:
            name = self._name("an attribute")
            self._word("=")
            yield name, self._name("its value")
            if not self._takes(","):
                break
        self._word("]")

    def _margin(self) -> float:
        token = self.tokens[0]
        number = self._number("by how much it may be worse")
        if number < 0:
            raise SpecError(f"gate {self.text!r}: at {token.place} a margin below 0; say how much worse it may be")
        return number

    def _level(self) -> float:
        token = self.tokens[0]
        percent = self._number("a level such as 95%")
        self._word("%")
        if not 50 < percent < 100:
            raise SpecError(f"gate {self.text!r}: at {token.place} a level must lie between 50% and 100%")
        return percent / 100

    def _number(self, what: str) -> float:
        try:
            number = float(self.tokens[0].text) if self.tokens[0].kind == "word" else math.nan
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            self._expected(what)
        self._next()
        return number

    def _name(self, what: str) -> str:
        if self.tokens[0].kind not in ("word", "quoted"):
            self._expected(what)
        return self._next().text

    def _word(self, text: str) -> None:
        if not self._takes(text):
            self._expected(f"`{text}`")

    def _takes(self, text: str) -> bool:
        if self.tokens[0].kind in ("word", "sign") and self.tokens[0].text == text:
            self._next()
            return True
        return False

    def _next(self) -> _Token:
        return self.tokens.pop(0)

    def _expected(self, what: str) -> NoReturn:
        token = self.tokens[0]
        found = f"at {token.place} stands {token.text!r}" if token.kind != "end" else f"at {token.place} it ends"
        raise SpecError(f"gate {self.text!r}: {found}, but {what} is expected")
