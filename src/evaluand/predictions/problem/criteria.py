"""How the labels of truth and predictions fit a criterion: the positive label, two classes, labels not in the truth."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, Fault, plural
from evaluand.core.files.cells import typed
from evaluand.evaluation.prediction_table import label_text
from evaluand.predictions.problem.aligned import AlignedTables, Columns
from evaluand.predictions.problem.definitions import Rule
from evaluand.predictions.problem.problem import Criterion
from evaluand.predictions.problem.sides import CONFIDENCE, Attribute


class CriterionError(Exception):
    """A criterion that cannot judge.

    Attributes:
        attribute: which of its attributes is wrong; None where the predictions are.
        code: names the class of the fault.
    """

    def __init__(self, attribute: Attribute | None, code: str, message: str) -> None:
        super().__init__(message)
        self.attribute, self.code = attribute, code


def label_parameters(
    aligned: AlignedTables, criterion: Criterion, rule: Rule, targets: tuple[str, ...]
) -> dict[str, Any]:
    """The metric's parameter `label` where the rule looks at one class.

    Raises:
        CriterionError: the positive label is unknown, or there are more than two classes for a metric of two.
        DataError: predictions have labels that the truth does not have.
    """
    parameters: dict[str, Any] = {}
    if not rule.two_classes and rule.positive == "none":
        return parameters
    for name in targets:
        labels = vocabulary(aligned.columns(name, rule.reads))
        if rule.two_classes and len(labels) > 2:
            _refuse_third_class(aligned, criterion, rule, name)
        if rule.one_value and len(labels) == 2:
            parameters["label"] = max(labels)
        positive = _positive_label(criterion, rule, labels)
        if positive is not None:
            parameters["label"] = positive
    return parameters


def vocabulary(columns: Columns) -> list[Any]:
    """All labels of a target in truth and predictions."""
    if pa.types.is_list(columns["truth"].type):
        both = [columns[name].flatten() for name in ("truth", "prediction")]
        return sorted(pa.chunked_array(both).unique().to_pylist())
    labels: list[Any] = columns["truth"].dictionary.to_pylist()
    return labels


def criterion_notes(aligned: AlignedTables, rule: Rule, name: str) -> Iterable[Fault]:
    """Notes on a target: predicted labels that the truth never has, and confidences that the definition ignores."""
    yield from _unknown_label_notes(aligned, rule, name)
    confidence = aligned.predictions.find_column(CONFIDENCE)
    if rule.parameters.get("scored_by") == "labels" and confidence is not None:
        message = "is ignored: this definition takes the area of labels, not of scores"
        yield aligned.predictions.fault("confidence_not_read", message, column=confidence)
    elif rule.reads == "sets" and aligned.with_sets and confidence is not None:
        message = "is not read by metrics of labels: every row is a predicted label, whatever its confidence"
        yield aligned.predictions.fault("confidence_not_read", message, column=confidence)


def _unknown_label_notes(aligned: AlignedTables, rule: Rule, name: str) -> Iterable[Fault]:
    if rule.reads not in ("labels", "sets") or rule.clusters:
        return
    columns = aligned.columns(name, rule.reads)
    if aligned.with_sets and rule.reads == "sets":
        truth, predicted = (pc.unique(columns[side].flatten()) for side in ("truth", "prediction"))
        unknown = predicted.filter(pc.invert(pc.is_in(predicted, truth)))
    else:
        labels = columns["truth"].dictionary
        true, predicted = (np.bincount(columns[s].indices, minlength=len(labels)) for s in ("truth", "prediction"))
        unknown = labels.filter(pa.array((predicted > 0) & (true == 0)))
    if len(unknown):
        some = ", ".join(map(repr, unknown[:5].to_pylist())) + (" …" if len(unknown) > 5 else "")
        message = f"predicted but never true of these rows: {some}"
        yield aligned.predictions.fault("unknown_label", message, column=name)


def _refuse_third_class(aligned: AlignedTables, criterion: Criterion, rule: Rule, name: str) -> None:
    """Refuses more than two classes in the truth, or labels of predictions that the truth does not have."""
    truth = aligned.columns(name, rule.reads)["truth"]
    occurs = np.bincount(truth.indices, minlength=len(truth.dictionary)) > 0
    known, unknown = (truth.dictionary.filter(pa.array(mask)).to_pylist() for mask in (occurs, ~occurs))
    if len(known) > 2:
        some = ", ".join(map(repr, known[:4])) + (" …" if len(known) > 4 else "")
        average = _AVERAGES.get(criterion.metric, "f1_macro")
        message = f"is for two classes, but the truth has {len(known)}: {some}; use an average such as {average}"
        raise CriterionError("metric", "not_applicable", message)
    raise DataError(_unknown_label_faults(aligned, name, known, unknown))


_AVERAGES: Final = {"roc_auc": "roc_auc_macro"}


def _unknown_label_faults(aligned: AlignedTables, name: str, known: list[Any], unknown: list[Any]) -> Iterable[Fault]:
    """The first row of each label that the truth does not have, and how many more there are."""
    column = aligned.predictions.column(name)
    labels = " and ".join(map(repr, known))
    for label in unknown:
        rows = np.flatnonzero(np.asarray(pc.equal(column, pa.scalar(label, column.type)).fill_null(False)))
        alike = [each for each in known if str(each).strip().lower() == str(label).strip().lower()]
        hint = f" (did you mean {alike[0]!r}?)" if alike else ""
        more = (
            "" if len(rows) == 1 else f"; {plural(len(rows) - 1, 'more row')} {'has' if len(rows) == 2 else 'have'} it"
        )
        message = f"is {label!r}, but the truth has only {labels}{hint}{more}"
        yield aligned.predictions.fault("unknown_label", message, int(rows[0]), name)


def _positive_label(criterion: Criterion, rule: Rule, labels: Sequence[Any]) -> Any:
    """The positive label in the type of the labels; None where the rule needs none."""
    if rule.positive == "none" or (rule.positive == "chosen" and criterion.positive is None):
        return None
    by_text = {label_text(label): label for label in labels}
    listed = " and ".join(map(repr, sorted(labels)))
    if criterion.positive is None:
        known = [label for label in labels if label is True or label_text(label) == "1"]
        if not known and set(by_text) <= {"0", "False"}:
            known = [type(labels[0])(1)]
        if not known:
            raise CriterionError("positive", "needs_positive", f"say which label is positive (posLabel): {listed}")
        return known[0]
    kind = {bool: "boolean", int: "integer"}.get(type(next(iter(labels), "")), "text")
    [value] = typed(pa.array([criterion.positive]), kind, lambda row, message: None).to_pylist()
    if value in labels or (len(labels) < 2 and value is not None):
        return value
    listed = f"is none of {listed}" if len(labels) > 1 else f"is no {kind}, as the labels are"
    message = f"the positive label (posLabel) {criterion.positive!r} {listed}"
    raise CriterionError("positive", "needs_positive", message)
