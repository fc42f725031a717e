"""The evaluations that names refer to, and the metrics they are compared by, resolved before any row is paired."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from shlex import quote
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import (
    Aggregation,
    Measure,
    check_measures,
    find_summary,
    shared_ranges,
    with_ranges,
)
from evaluand.aggregation.kind import AGGREGATIONS
from evaluand.aggregation.score_shards import dataset_of
from evaluand.comparison.pairing import why_incomparable, why_unpairable
from evaluand.core import registry
from evaluand.core.errors import NotFound, SpecError, nearest, warn, with_article
from evaluand.core.labels import join_name
from evaluand.core.provenance import OF_CLASS, experiment_origin
from evaluand.evaluation.evaluator import Evaluation, newest_evaluation_of
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.metrics.base.confusion import TRUTH
from evaluand.metrics.base.metric import Metric, Missing
from evaluand.metrics.names import accepted_parameters, as_called, make_metric, resolve_metric
from evaluand.run.kind import RUNS
from evaluand.store.kinds import made_of, singular
from evaluand.store.store import Ref, Store, find_made_from, resolve


def find_evaluations(store: Store, text: str) -> list[Evaluation]:
    """The evaluations that a name or id refers to.

    An evaluation refers to itself, a run to its newest evaluation, an aggregation to all evaluations it summarises.

    Raises:
        NotFound: nothing has this name.
        SpecError: it has no evaluations, or one of them is not finished.
    """
    return read_evaluations(store, *find_artifact(store, text), text)


def find_measures(store: Store, texts: Sequence[str]) -> list[Measure] | None:
    """The measures of the aggregations that are named, and of those that summarised the others.

    Returns:
        None where no aggregation is named.
    """
    found = {text: find_artifact(store, text) for text in texts}
    if all(kind != AGGREGATIONS for kind, _ in found.values()):
        return None
    return [
        measure
        for text, (kind, id) in found.items()
        for measure in (
            Aggregation(store, id).measures
            if kind == AGGREGATIONS
            else declared_measures(find_evaluations(store, text))
        )
    ]


def declared_measures(evaluations: Iterable[Evaluation]) -> list[Measure]:
    """The measures that evaluations were summarised by: they say what the scores mean."""
    return [measure for summary in find_summaries(evaluations) for measure in summary.measures]


def find_summaries(evaluations: Iterable[Evaluation]) -> list[Aggregation]:
    """The aggregation of each evaluation that has one, each once."""
    summaries = [summary for evaluation in evaluations if (summary := find_summary(evaluation))]
    return [*{summary.id: summary for summary in summaries}.values()]


def find_artifact(store: Store, text: str, among: Sequence[str] = (EVALUATIONS, RUNS, AGGREGATIONS)) -> tuple[str, str]:
    """The kind and id of the evaluation, run or aggregation that a name or id refers to.

    Args:
        among: these kinds; a name of several refers to the first.

    Raises:
        NotFound: nothing has this name.
        SpecError: it is of another kind.
    """
    for kind in among:
        with suppress(NotFound):
            return resolve(store, text, kind)
    kind, id = resolve(store, text)
    raise SpecError(f"{text!r} is {singular(kind)} {id[:12]}; name evaluations, runs or an aggregation")


def read_evaluations(store: Store, kind: str, id: str, name: str = "") -> list[Evaluation]:
    """The evaluations of an artifact; of an aggregation in the order of its labels.

    Args:
        name: by which the artifact was found.

    Raises:
        SpecError: it has none, or one of them is not finished.
    """
    if kind == RUNS:
        return [_newest_of_run(store, id)]
    ids = [id] if kind == EVALUATIONS else store.manifest(kind, id)["provenance"]["evaluations"]
    for one in ids:
        if not store.is_sealed(EVALUATIONS, one):
            raise SpecError(
                f"evaluation {one[:12]} is not finished",
                python="resume it before it is compared",
                command=f"continue it with `evaluand resume {one[:12]}`",
            )
    found, names = [Evaluation(store, one) for one in ids], [name]
    if kind == AGGREGATIONS:
        names = [join_name(name, label) for label in Aggregation(store, id).labels]
    for evaluation, own in zip(found, names, strict=True):
        if Ref(own, EVALUATIONS, evaluation.id) in store.named(own):
            evaluation.called = own
    return found


def _newest_of_run(store: Store, run: str) -> Evaluation:
    if graded := newest_evaluation_of(store, run):
        return graded
    origin = experiment_origin(store.manifest(RUNS, run))
    others = [one for kind in made_of(RUNS) if kind != EVALUATIONS for one in find_made_from(store, kind, RUNS, run)]
    if others:  # its experiment may have no scorers
        kind, name = others[0]["kind"], others[0]["name"] or others[0]["id"][:12]
        raise SpecError(
            f"run {run[:12]} has not been evaluated, but {with_article(singular(kind))} was made of it, called {name}",
            python=f"`evaluand show {quote(name)}` in a shell shows it",
            command=f"see it with `evaluand show {quote(name)}`",
        )
    how = "evaluate it with" if origin else "evaluate it with an experiment file that has its task and scorers:"
    raise SpecError(
        f"run {run[:12]} has not been evaluated",
        python="see Evaluator.evaluate",
        command=f"{how} `evaluand run {quote(origin.path) if origin else 'FILE'}`",
    )


class ResolvedMeasures(NamedTuple):
    """The measures of a comparison.

    Attributes:
        compared: each metric on each scorer, without repetitions.
        left_out: the declared metrics that are not compared: `scorer`, `metric`, `signature` and the `reason`. Empty
            where the metrics were named.
    """

    compared: list[Measure]
    left_out: list[dict[str, str]]


class _Declared(NamedTuple):
    measure: Measure
    obstacle: str | None  # why the evaluations cannot be compared by it


def resolve_measures(
    evaluations: Sequence[Evaluation],
    scorers: str | Sequence[str] | None,
    metrics: str | Metric | Measure | Sequence[str | Metric | Measure] | None,
    missing: Missing | None,
    declared: Sequence[Measure],
) -> ResolvedMeasures:
    """What evaluations are compared by; see `compare` for the arguments.

    Raises:
        SpecError: a scorer is not shared, or there is nothing to average.
    """
    names = _as_list(scorers)
    shared = _shared_scorers(evaluations, names, declared)
    named = _as_list(metrics)
    left_out: list[dict[str, str]] = []
    if named:
        found = list(_named_measures(evaluations, named, shared, declared))
    else:
        candidates = [*_check_declared(evaluations, declared)]
        left_out = _list_left_out(one for one in candidates if not names or one.measure.scorer in names)
        found = [measure for scorer in shared for measure in _usual_measures(evaluations, scorer, candidates)]
    if not found and left_out:
        reasons = dict.fromkeys(f"{one['metric']} · {one['scorer']}: {one['reason']}" for one in left_out)
        raise SpecError(f"no declared metric can be compared: {'; '.join(reasons)}")
    if not found:
        raise SpecError(f"no scorer returned numbers: {', '.join(shared)}; name a metric that reads another column")
    if missing is not None:
        found = [dataclasses.replace(m, metric=dataclasses.replace(m.metric, missing=missing)) for m in found]
    distinct: dict[tuple[str, str], Measure] = {}
    for measure in found:  # the same test twice would count twice in its family
        distinct.setdefault((measure.scorer, definition(measure.metric)), measure)
    return ResolvedMeasures(list(distinct.values()), left_out)


def default_metric(name: str, **parameters: Any) -> Metric:
    """The metric of a name, with its defaults; without a direction where that is a parameter, which nobody set.

    Args:
        parameters: further ones of its kind.

    Raises:
        SpecError: no metric has this name, or it has no defaults.
    """
    found = registry.find("metrics", resolve_metric(name).kind)
    unknown = {field.name: None for field in dataclasses.fields(found) if field.name == "direction"}
    return make_metric(name, **unknown | parameters)


def undeclared_metric(name: str, evaluations: Sequence[Evaluation], scorer: str, declared: Iterable[Measure]) -> Metric:
    """The metric of a name that no measure has, of the class that the declared metrics of the scorer look at.

    Raises:
        SpecError: no metric has this name, or it depends on the class of two and these metrics look at none, or at
            several.
    """
    metric = default_metric(name)
    if TRUTH not in evaluations[0].columns(scorer) or not metric.label_columns:
        return metric
    parameters = [vars(measure.metric) for measure in declared if measure.scorer == scorer]
    of_class = [values for values in parameters if isinstance(values.get("label"), str | int)]
    of_class = of_class or [values for each in evaluations if "label" in (values := _of_class(each))]
    if len({values["label"] for values in of_class}) == 1:
        known = {word: values[word] for values in of_class for word in values.keys() & {"label", "scored_by"}}
        return default_metric(name, **accepted_parameters(name, known))
    if metric.of_either_class and _have_two_classes(evaluations, scorer):
        raise SpecError(
            f"{name} is another number for each of two classes and for both, and no stored metric of {scorer!r} says"
            f" which class is meant; name it where the evaluations are made, by `--metric {name}` of `evaluand score`,"
            f" {{kind: {name}, label: …}} under metrics of the experiment or make_metric({name!r}, label=…)"
        )
    return metric


def _of_class(evaluation: Evaluation) -> dict[str, Any]:
    """The parameters of metrics of one class that were given with predictions; none of other evaluations."""
    found: dict[str, Any] = evaluation.manifest["provenance"].get("origin", {}).get(OF_CLASS, {})
    return found


def _have_two_classes(evaluations: Sequence[Evaluation], scorer: str) -> bool:
    """Whether the truths are two labels, or fewer."""
    columns = [batch.column(0) for each in evaluations for batch in each.batches(scorer, [TRUTH])]
    if any(pa.types.is_nested(column.type) for column in columns):
        return False
    return len({label for column in columns for label in column.drop_null().unique().to_pylist()}) <= 2


def declared_as(name: str, measures: Iterable[Measure]) -> list[Metric]:
    """The declared metrics that a name stands for, or else those of the kind with this name.

    Example:
        >>> from evaluand.metrics.names import make_metric
        >>> both = [Measure("right", make_metric(name)) for name in ("recall", "recall_macro")]
        >>> [metric.average for metric in declared_as("tpr", both)]
        ['binary']
    """
    declared = list(measures)
    called = [(measure, as_called(measure.metric, name)) for measure in declared]
    exact = [measure.metric for measure, metric in called if metric is measure.metric or name in measure.called]
    of_kind = [measure.metric for measure in declared if measure.metric.kind == name]
    return exact or of_kind or [metric for _, metric in called if metric is not None]


def find_places(
    wanted: str | Measure | Sequence[str | Measure], measures: Sequence[Measure], missing: Missing | None
) -> list[int]:
    """The places of the measures that are wanted, in their order; of a name those on the first scorer that has it.

    Args:
        missing: what happens to rows without a score in place of what a wanted metric says.
    """
    keys = [(measure.scorer, definition(measure.metric)) for measure in measures]
    places = set[int]()
    for one in _as_list(wanted):
        if isinstance(one, str):
            meant = declared_as(one, measures)
            places.update([place for place, measure in enumerate(measures) if measure.metric in meant][:1])
        else:
            metric = one.metric if missing is None else dataclasses.replace(one.metric, missing=missing)
            places.update(place for place, key in enumerate(keys) if key == (one.scorer, definition(metric)))
    return sorted(places)


def left_out_row(measure: Measure, reason: str) -> dict[str, str]:
    """The row of a measure that is not compared."""
    signature = definition(measure.metric)
    return {"scorer": measure.scorer, "metric": measure.metric.kind, "signature": signature, "reason": reason}


def definition(metric: Metric) -> str:
    """The signature without the interval, since a comparison has another one."""
    return metric.signature.rpartition(" interval=")[0] if metric.interval_name else metric.signature


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def _shared_scorers(
    evaluations: Sequence[Evaluation], names: Sequence[Any], declared: Sequence[Measure]
) -> Sequence[str]:
    """The named scorers, else all that the evaluations share: first those of declared metrics, in their order."""
    shared = [s for s in evaluations[0].scorers if all(s in e.scorers for e in evaluations)]
    for scorer in names:
        if not isinstance(scorer, str):
            raise SpecError(f"scorers must be names of scorers, not {scorer!r}")
        if scorer not in shared:
            raise SpecError(
                f"scorer {scorer!r} is not in all evaluations{nearest(scorer, shared)};"
                f" they share {', '.join(shared) or 'none'}"
            )
    if not (names or shared):
        raise SpecError("the evaluations share no scorer; evaluate both runs by the same scorers")
    first = (each.scorer for each in declared if each.scorer in shared)
    return names or list(dict.fromkeys([*first, *shared]))


def _named_measures(
    evaluations: Sequence[Evaluation],
    metrics: Iterable[str | Metric | Measure],
    scorers: Sequence[str],
    declared: Sequence[Measure],
) -> Iterator[Measure]:
    for metric in metrics:
        if isinstance(metric, Measure):
            yield metric
        elif isinstance(metric, str):
            for scorer in scorers:
                alike = declared_as(metric, (m for m in declared if m.scorer == scorer))
                own = [Measure(scorer, each) for each in alike]
                yield from own or [Measure(scorer, undeclared_metric(metric, evaluations, scorer, declared))]
        else:
            yield from (Measure(scorer, metric) for scorer in scorers)


def _check_declared(evaluations: Sequence[Evaluation], declared: Iterable[Measure]) -> Iterator[_Declared]:
    """The declared metrics, except those that only a criterion of fairness consists of, each checked once."""
    tables = [({name: e.columns(name) for name in e.scorers}, dataset_of(e).roles) for e in evaluations]
    for declaration in declared:
        if declaration.criterion is None:
            measure = Measure(declaration.scorer, declaration.metric)
            obstacle = _find_obstacle(measure, tables)
            if obstacle is None and why_incomparable(evaluations, measure.scorer, measure.metric):
                obstacle = f"the systems have different {measure.metric.constant_column}"
            yield _Declared(measure, obstacle)


def _find_obstacle(measure: Measure, tables: Iterable[tuple[Any, Any]]) -> str | None:
    """Why evaluations cannot be compared by a measure; the text is stored with the comparison."""
    try:
        for columns, roles in tables:
            check_measures([measure], columns, roles)
    except SpecError:
        return "not all evaluations have what is read"
    if not measure.metric.has_differences:
        other = measure.metric.compared_by
        return f"its differences have no interval{f'; compare by {other}' if other else ''}"
    return None if why_unpairable(measure.metric) is None else "each of several responses is a row"


def _list_left_out(candidates: Iterable[_Declared]) -> list[dict[str, str]]:
    found: dict[tuple[str, str], dict[str, str]] = {}
    for measure, obstacle in candidates:
        if obstacle is not None:
            found.setdefault((measure.scorer, definition(measure.metric)), left_out_row(measure, obstacle))
    return [*found.values()]


def _usual_measures(
    evaluations: Sequence[Evaluation], scorer: str, candidates: Sequence[_Declared]
) -> Iterator[Measure]:
    """The metrics that summarised the scores; else accuracy where all are 0 or 1, and the mean of other numbers."""
    own = [one for one in candidates if one.measure.scorer == scorer]
    if suiting := [one.measure for one in own if one.obstacle is None]:
        yield from suiting
        return
    values = [b.column(0).drop_null() for e in evaluations for b in e.batches(scorer, ["value"])]
    if not any(len(part) for part in values):
        return
    binary = all(pc.all(pc.is_in(part, pa.array([0.0, 1.0]))).as_py() is not False for part in values)
    usual = "accuracy" if binary else "mean"
    if own:
        kinds = ", ".join(dict.fromkeys(one.measure.metric.kind for one in own))
        warn(
            f"{scorer}: {kinds} as declared cannot be compared row by row; the plain {usual} of the values is compared"
            " instead"
        )
    yield from with_ranges([Measure(scorer, default_metric(usual))], shared_ranges(evaluations))
