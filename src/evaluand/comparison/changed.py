"""Examples that two evaluations have by the same id, but with different content, and so do not pair."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from evaluand.aggregation.score_shards import dataset_of
from evaluand.core.errors import DataError, NotFound, plural, pluralize, warn
from evaluand.core.key_columns import DIGEST
from evaluand.data.dataset import Dataset, Example
from evaluand.data.kind import DATASETS
from evaluand.data.roles import Roles
from evaluand.evaluation.evaluator import Evaluation
from evaluand.run.output_columns import output_columns

_SHOWN: Final = 3


class ChangedExamples(NamedTuple):
    """The examples that differ between two evaluations.

    Attributes:
        a: the position of the first evaluation.
        b: the position of the second.
        ids: of the examples that both have with different content.
        shared: the number of ids that both have.
        differ: what differs in the first of them, such as `expected` or the names of columns of the input.
    """

    a: int
    b: int
    ids: Sequence[str]
    shared: int
    differ: Sequence[str]


def check_examples(evaluations: Sequence[Evaluation], labels: Sequence[str]) -> None:
    """Warns of examples with the same id and different content, which are not paired.

    Raises:
        DataError: they differ in the recorded output of a system, so only rows where systems agree would be compared.
    """
    for one in _find_changed(evaluations):
        names = f"{labels[one.a]} and {labels[one.b]}"
        ids = ", ".join(map(repr, one.ids[:_SHOWN]))
        differ = pluralize(len(one.ids), "differs", "differ")
        message = (
            f"{len(one.ids):,} of {plural(one.shared, 'example')} that {names} share by id {differ} in"
            f" {', '.join(one.differ) or 'content'}, such as {ids}"
        )
        outputs = [name for name in one.differ if name in _outputs(evaluations[one.a]) | _outputs(evaluations[one.b])]
        if outputs:
            raise DataError(
                f"{message}; {outputs[0]!r} is a recorded output and part of the input of the examples, so only rows in"
                " which both systems agree would be compared: name input under dataset, without it, and run both again"
            )
        they_are = pluralize(
            len(one.ids), "it is not the same example, so it is", "they are not the same examples, so they are"
        )
        warn(f"{message}; {they_are} left out of the comparison")


def check_rows(evaluations: Sequence[Evaluation], labels: Sequence[str]) -> None:
    """Refuses results of arrays whose rows are not the same: only rows with equal truths would be compared.

    Raises:
        DataError: a row, which only its position identifies, has other content.
    """
    for one in _find_changed(evaluations, by_position=True):
        raise DataError(
            f"{len(one.ids):,} of {plural(one.shared, 'row')} of {labels[one.a]} and {labels[one.b]}"
            f" {pluralize(len(one.ids), 'differs', 'differ')} in {', '.join(one.differ) or 'content'}, first at row"
            f" {one.ids[0]}; rows are paired by their position, so evaluate both with the same truth, groups, weights"
            " and clusters, in the same order"
        )


def describe_other_scorers(
    evaluations: Sequence[Evaluation], labels: Sequence[str], scorers: Iterable[str]
) -> Iterator[str]:
    """A sentence for each scorer that is not the same everywhere: then a difference may come from it."""
    specs = [evaluation.manifest["spec"]["scorers"] for evaluation in evaluations]
    for scorer in dict.fromkeys(scorers):
        others = [label for label, spec in zip(labels, specs, strict=True) if spec.get(scorer) != specs[0].get(scorer)]
        if others:
            yield (
                f"the scorer {scorer!r} of {', '.join(others)} is not that of {labels[0]}, so "
                f"differences may come from it; grade both with the same scorer to compare the systems"
            )


def _find_changed(evaluations: Sequence[Evaluation], by_position: bool = False) -> Iterator[ChangedExamples]:
    """The examples that differ; with `by_position`, those without a column of ids have their position as id."""
    ids = [evaluation.manifest["spec"]["dataset"] for evaluation in evaluations]
    if len({*ids}) < 2:
        return
    try:
        datasets = {id: dataset_of(evaluation) for id, evaluation in zip(ids, evaluations, strict=True)}
    except NotFound:
        return
    if not (by_position or all(dataset.roles.id for dataset in datasets.values())):
        return
    digests = {id: _digests_by_id(evaluations[0], id, dataset) for id, dataset in datasets.items()}
    for (a, one), (b, other) in combinations(enumerate(ids), 2):
        if one == other:
            continue
        shared = [id for id in digests[one] if id in digests[other]]
        changed = [id for id in shared if digests[one][id] != digests[other][id]]
        if changed:
            first, second = (_example(datasets[each], changed[0]) for each in (one, other))
            yield ChangedExamples(a, b, changed, len(shared), _differing_parts(first, second, datasets[one].roles))


def _digests_by_id(evaluation: Evaluation, id: str, dataset: Dataset) -> dict[str, bytes]:
    batches = evaluation.store.read(DATASETS, id, "examples", [DIGEST])
    digests = (digest for batch in batches for digest in batch.column(0).to_pylist())
    return dict(zip(dataset.ids(), digests, strict=True))


def _example(dataset: Dataset, id: str) -> Example:
    position = next(position for position, other in enumerate(dataset.ids()) if other == id)
    return next(iter(dataset.examples(position, position + 1)))


def _differing_parts(one: Example, other: Example, roles: Roles) -> list[str]:
    """The columns that differ, where the roles name them."""
    found: list[str] = []
    for part in ("input", "expected", "attributes", "weight", "cluster", "metadata"):
        a, b = getattr(one, part), getattr(other, part)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            found += [name for name in dict.fromkeys([*a, *b]) if a.get(name) != b.get(name)]
        elif a != b:
            column = getattr(roles, part)
            found.append(column if isinstance(column, str) else part)
    return found


def _outputs(evaluation: Evaluation) -> set[str]:
    """The columns that a recorded task takes its outputs from."""
    try:
        task = evaluation.read_run().manifest["spec"]["task"]
    except NotFound:
        return set()
    return {*output_columns(task)}
