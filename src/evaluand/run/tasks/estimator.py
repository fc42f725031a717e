"""Estimators: anything with fit and predict, as scikit-learn has it, cross-validated or used as it is.

A row is asked one by one, but an estimator learns from many and predicts best in one go. So the first row of a fold
fits the estimator on all that the fold may learn from and predicts all that it tests; every row is then answered from
that. What an answer depends on is the dataset as a whole, so answers are reused within one dataset only.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError, EvaluandWarning, SpecError, TaskError, nearest, warn
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.data.dataset import Dataset
from evaluand.data.source import read_column, read_values
from evaluand.data.split import NOT_TESTED, Folds, Split
from evaluand.run.task import Request, Task
from evaluand.store import tables
from evaluand.trace.spans import TaskSpan

Array = np.ndarray[Any, Any]


class PartedClusters(EvaluandWarning):
    """A split parts rows that the dataset says belong together."""


class _AsData:
    """What experiment files can say of a split: no folds, which are no data of theirs."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return handler.generate_schema(Split | None)


@dataclass(eq=False)
class EstimatorTask(Task[Any, Any]):
    """Gives each example the prediction of an estimator that has not learnt from it.

    With a split, the estimator is fitted once for each fold of each repeat, on a fresh copy; the repeats of the split
    are the replications of the run. Examples that a hold-out only learns from are skipped. A fit that fails makes the
    rows of its fold failed, and is not tried again for each of them. Without a split the estimator is used as it is.
    A split keeps together what its `groups` name; where it parts a cluster of the dataset, a `PartedClusters` warning
    says so.

    The features are the dataset's input:

    - several columns of numbers or booleans: a matrix of float64, in the order of the role; a missing number is NaN;
    - several columns otherwise, or with `frame`: a pandas DataFrame, or without pandas an array of objects;
    - one column (named alone, not in a list): of numbers a matrix of one column, of lists of numbers their matrix, of
      text a one-dimensional array of text, as vectorisers take it.

    An estimator that was fitted on a DataFrame gets one, with the columns it knows. What it learns is the expected
    value, or nothing where the dataset has none; with several targets it must give an output for each.

    The response is the prediction. Where the estimator has `predict_proba`, it is an object of `prediction`,
    `probabilities` (class → probability; a class that is no text by its JSON text) and `confidence`: the probability of
    the predicted class, or of the class `positive` if that is set, which is then added as `confidence_of`.
    With several targets, the response is an object target → such a response. Where lists of texts are expected and a
    split says what is learnt, the estimator learns a column of 0 and 1 for each label, and the prediction is a list.

    A parameter `random_state` that is None, of the estimator or within it, is set to a number made from the run's seed,
    the repeat and the fold, so that a run can be repeated. A task object serves one run at a time. A limit on the time
    of calls includes the wait for the fit.

    Attributes:
        model: an estimator, or a function or class that makes one when called without arguments.
        split: how examples are divided into those it learns from and those it is tested on; or the folds themselves,
            where a file lists them.
        weighted: whether the dataset's weights are given to `fit` as `sample_weight`.
        positive: the class whose probability is the confidence.
        frame: whether columns of numbers too are given as a DataFrame, for estimators that choose columns by name.
        version: pins the model by its name and this version instead of by its fingerprint.
        files: files it depends on that cannot be observed, such as those native code reads.
        output_schema: what each output must be; see `Task`.

    Raises:
        SpecError: the model is none, or cannot be used like this.

    Example:
        >>> from sklearn.dummy import DummyClassifier
        >>> from evaluand.run.runner import Runner
        >>> data = Dataset.from_rows([{"input": i, "expected": "yes" if i % 3 else "no"} for i in range(6)])
        >>> run = Runner().run(EstimatorTask(DummyClassifier(), Split(folds=2, stratified=True)), data)
        >>> [response.responses[0]["prediction"] for response in run]
        ['yes', 'yes', 'yes', 'yes', 'yes', 'yes']
    """

    model: Any
    split: Annotated[Split | Folds | None, _AsData] = None
    _: KW_ONLY
    weighted: bool = False
    positive: str | int | float | bool | None = None
    frame: bool = False
    version: str | None = None
    files: Sequence[str | os.PathLike[str]] = ()
    output_schema: Any = None

    kind = "estimator"
    behaviour = 2

    def __post_init__(self) -> None:
        self._work: _Work | None = None
        if not self._is_factory and not hasattr(self.model, "predict"):
            raise SpecError(
                f"estimator: a {type(self.model).__name__} is not a model; pass an estimator with predict, or a"
                " function that creates one"
            )
        if self.weighted and self.split is None:
            raise SpecError("estimator: weighted is for fitting, and without a split nothing is fitted")

    @property
    def name(self) -> str:
        return str(getattr(self.model, "__name__", type(self.model).__name__))

    @property
    def reads(self) -> tuple[str, ...]:
        return ("dataset", "index")

    @property
    def replications(self) -> int | None:
        if isinstance(self.split, Folds):
            return len(self.split.numbers)
        return self.split.repeats if self.split else None

    def identify(self) -> Identity:
        code = self._unfitted() if self.split and not self._is_factory else self.model
        if type(self) is not EstimatorTask:
            code = [type(self), code]
        how = {
            "behaviour": self.behaviour,
            "split": _split_spec(self.split),
            "weighted": self.weighted,
            "positive": self.positive,
            "frame": self.frame,
        }
        seeds = self.split is not None
        return code_identity(self.kind, code, version=self.version, files=self.files, seeds_estimators=seeds, **how)

    def prepare(self, dataset: Dataset) -> None:
        """Divides the dataset.

        Raises:
            SpecError: the model, the split and the dataset do not fit together; says how.
        """
        model = self._unfitted() if self.split else self._fitted()
        self._work = _Work(self, model, dataset)
        if self._work.folds is not None and dataset.roles.cluster is not None:
            _warn_of_split_clusters(self._work.folds, dataset, dataset.roles.cluster)

    def skips(self, index: int, id: str, replication: int) -> bool:
        return self._prepared.number(index, replication) == NOT_TESTED

    def fold(self, index: int, id: str, replication: int) -> int | None:
        number = self._prepared.number(index, replication)
        return None if self.split is None or number == NOT_TESTED else number

    def call(self, request: Request) -> Any:
        return self._prepared.answer(request.index, request.replication, request.run_seed)

    def do_run(self, input: Any, task_span: TaskSpan) -> Any:
        raise TaskError("an estimator answers for the examples of a dataset; it cannot be asked for an input alone")

    @property
    def _prepared(self) -> _Work:
        if self._work is None:
            raise SpecError("the estimator has no dataset; run it with a Runner")
        return self._work

    @property
    def _is_factory(self) -> bool:
        return isinstance(self.model, type) or (callable(self.model) and not hasattr(self.model, "predict"))

    def _unfitted(self) -> Any:
        """A fresh estimator."""
        made = self._create_model() if self._is_factory else _clone(self.model)
        if not hasattr(made, "fit") or not hasattr(made, "predict"):
            raise SpecError(f"estimator: {self.name} is a {type(made).__name__}, which lacks fit or predict")
        return made

    def _fitted(self) -> Any:
        """The estimator to be used as it is."""
        model = self._create_model() if self._is_factory else self.model
        if not hasattr(model, "predict"):
            raise SpecError(f"estimator: {self.name} is a {type(model).__name__}, which lacks predict")
        if not _is_fitted(model):
            raise SpecError(f"estimator: {self.name} is not fitted; fit it first, or give a split to fit it by")
        return model

    def _create_model(self) -> Any:
        try:
            return self.model()
        except Exception as error:
            raise SpecError(f"estimator: {self.name}() cannot be made: {type(error).__name__}: {error}") from error


def _split_spec(split: Split | Folds | None) -> Any:
    if isinstance(split, Folds):
        numbers = hashlib.blake2b(split.numbers.astype("<i4").tobytes(), digest_size=16).hexdigest()
        return {"folds": split.count, "repeats": len(split.numbers), "numbers": numbers}
    return split.spec if split else None


def _assigned(split: Split | Folds | None, dataset: Dataset) -> Folds | None:
    if not isinstance(split, Folds):
        return split.assign(dataset) if split else None
    if split.numbers.shape[1] != len(dataset):
        raise SpecError(
            f"estimator: the folds are for {split.numbers.shape[1]:,} examples, but the dataset has {len(dataset):,}; "
            "pass the folds of this dataset"
        )
    return split


class _Work:
    """A task on one dataset: its features, what is to be learnt, and the answers of the folds fitted so far."""

    def __init__(self, task: EstimatorTask, model: Any, dataset: Dataset) -> None:
        self.task, self.indices = task, dataset.indices
        self.folds = _assigned(task.split, dataset)
        self.features = _features(dataset, task.frame, getattr(model, "feature_names_in_", None))
        self.targets = list(dataset.roles.expected) if isinstance(dataset.roles.expected, Mapping) else None
        self.truth, self.labels = _truth(dataset, self.folds) if self.folds else (None, None)
        self.weights = _weights(dataset, model) if task.weighted else None
        self.model = model
        _check_positive(task, model, self.truth)
        self._answers: dict[tuple[int, int, int], dict[int, Any] | TaskError] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """All but the lock and the answers so far, which a worker of a cluster makes itself."""
        return {name: value for name, value in vars(self).items() if name not in ("_answers", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _answers={}, _lock=threading.Lock())

    def number(self, index: int, repeat: int) -> int:
        """The fold in which an example is tested; 0 where there is no split."""
        return int(self.folds.numbers[repeat, self._position(index)]) if self.folds else 0

    def answer(self, index: int, repeat: int, seed: int) -> Any:
        """The response to an example."""
        key = (repeat, self.number(index, repeat), seed) if self.folds else (0, 0, 0)
        found = self._answers.get(key)
        if found is None:
            with self._lock:
                found = self._answers.get(key)
                if found is None:
                    found = self._answers[key] = self._tested(*key)
        if isinstance(found, TaskError):
            raise TaskError(str(found), code=found.code)
        return found[self._position(index)]

    def _position(self, index: int) -> int:
        return bisect_left(self.indices, index)

    def _tested(self, repeat: int, fold: int, seed: int) -> dict[int, Any] | TaskError:
        """The response to each example of a fold, by position; or why there are none."""
        model, step, code = self.model, "fit", "fit_failed"
        tested: Array = self.folds.test(repeat, fold) if self.folds else np.arange(len(self.indices))
        try:
            if self.folds:
                model = self._fitted(self.folds.train(repeat, fold), b"%d/%d/%d/" % (seed, repeat, fold))
            step, code = "prediction", "predict_failed"
            features = _take_rows(self.features, tested)
            if self.labels is not None:
                answers = _set_answers(model, features, self.labels)
            else:
                answers = _answers(model, features, self.targets, self.task.positive)
            return dict(zip(tested.tolist(), answers, strict=True))
        except Exception as error:
            what = f"repeat {repeat}, fold {fold}" if self.folds else "the dataset"
            return TaskError(f"the {step} of {what} failed: {type(error).__name__}: {error}", code=code)

    def _fitted(self, train: Array, seed: bytes) -> Any:
        model = self.task._unfitted()
        _set_random_states(model, seed)
        learnt = () if self.truth is None else (self.truth[train],)
        weights = {} if self.weights is None else {"sample_weight": self.weights[train]}
        model.fit(_take_rows(self.features, train), *learnt, **weights)
        return model


def _warn_of_split_clusters(folds: Folds, dataset: Dataset, cluster: str) -> None:
    column = pa.chunked_array([batch.column(0) for batch in dataset.columns([cluster])]).combine_chunks()
    if pa.types.is_nested(column.type):  # a metric that heeds clusters refuses these
        return
    codes = column.dictionary_encode()
    parted = len(folds.find_split_clusters(np.asarray(codes.indices.fill_null(-1))))
    if parted:
        problem = (
            f"rows of one {cluster!r} are in training and in test rows, for {parted:,} of {len(codes.dictionary):,}"
        )
        why = "values are optimistic; say groups: true in the split to keep them together"
        warn(f"{problem}: {why}", PartedClusters)


# -- the estimator


def _clone(model: Any) -> Any:
    try:
        from sklearn.base import clone
    except ImportError:
        raise SpecError(
            "estimator: a fresh copy for each fold needs scikit-learn: pip install 'evaluand[sklearn]'; or give a"
            " function that makes the estimator"
        ) from None
    try:
        return clone(model)
    except (TypeError, RuntimeError) as error:
        name = type(model).__name__
        raise SpecError(
            f"estimator: {name} cannot be copied unfitted; give a function that makes it: {error}"
        ) from None


def _is_fitted(model: Any) -> bool:
    """Whether a model has been fitted; for other models than scikit-learn's, predict fails if not."""
    if not type(model).__module__.startswith("sklearn."):
        return True
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _set_random_states(model: Any, seed: bytes) -> None:
    """Set every unset random state, each to a different number."""
    if not (hasattr(model, "get_params") and hasattr(model, "set_params")):
        return
    for name, value in sorted(model.get_params(deep=True).items()):
        if value is None and (name == "random_state" or name.endswith("__random_state")):
            drawn = hashlib.blake2b(seed + name.encode(), digest_size=4).digest()
            model.set_params(**{name: int.from_bytes(drawn, "little")})


def _check_positive(task: EstimatorTask, model: Any, truth: Array | None) -> None:
    """Raise if the positive class is not among the classes, if these are known."""
    if task.positive is None:
        return
    known = truth if task.split else getattr(model, "classes_", None)
    if isinstance(known, np.ndarray) and task.positive not in (classes := sorted(set(known.ravel().tolist()))):
        listed = ", ".join(map(repr, classes[:10])) + (", …" if len(classes) > 10 else "")
        raise SpecError(f"estimator: positive is {task.positive!r}, which is not a class; the classes are {listed}")


# -- what goes in


def _features(dataset: Dataset, frame: bool, known: Sequence[str] | None) -> Any:
    """The inputs as an estimator takes them, one row for each example."""
    role = dataset.roles.input
    names = [role] if isinstance(role, str) else list(role)
    if known is not None:
        missing = [name for name in known if name not in names]
        if missing:
            hint = nearest(missing[0], names)
            raise SpecError(f"estimator: it was fitted on {', '.join(missing)}, which the input lacks{hint}")
        return _frame(_table(dataset, list(known)))
    table = _table(dataset, names)
    if frame:
        return _frame(table)
    if isinstance(role, str) and not _is_number(table.schema.field(0)):
        return _one_column(table, dataset)
    if all(map(_is_number, table.schema)):
        return np.column_stack([_floats(table.column(i)) for i in range(len(names))])
    try:
        return _frame(table)
    except SpecError:  # no pandas
        return np.column_stack([_objects(read_values(table.column(name), table.field(name))) for name in names])


def _one_column(table: pa.Table, dataset: Dataset) -> Array:
    """A column of text as it is, one of lists of numbers as a matrix."""
    name = table.schema.names[0]
    values = read_values(table.column(0), table.field(0))
    if all(isinstance(value, str) for value in values):
        return _objects(values)
    width = len(values[0]) if isinstance(values[0], list) else -1
    for index, value in zip(dataset.indices, values, strict=True):
        is_row = isinstance(value, list) and len(value) == width
        if not is_row or not all(number is None or isinstance(number, int | float) for number in value):
            expected = (
                f"a list of {width} numbers, as the first" if width >= 0 else "a number, a list of numbers or text"
            )
            raise SpecError(
                f"estimator: {name!r} of _index_ {index} is not {expected}; name the columns in a list, or correct it"
            )
    return np.array(values, np.float64)


def _frame(table: pa.Table) -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise SpecError("estimator: inputs by name need pandas: pip install 'evaluand[pandas]'") from None
    return pd.DataFrame(
        {
            field.name: pd.Series(read_values(column, field), dtype=object)
            if tables.is_json(field)
            else column.to_pandas()
            for field, column in zip(table.schema, table.columns, strict=True)
        }
    )


def _take_rows(features: Any, positions: Array) -> Any:
    return features.iloc[positions] if hasattr(features, "iloc") else features[positions]


def _truth(dataset: Dataset, folds: Folds) -> tuple[Array | None, list[str] | None]:
    """What is to be learnt: a value or a row of values for each example; of sets of labels also all labels, sorted.

    A set of labels becomes a row with 1 for each of its labels, and 0 for the others.
    """
    expected = dataset.roles.expected
    if expected is None:
        return None, None
    names = [expected] if isinstance(expected, str) else list(expected.values())
    columns = [_values_to_learn(dataset, name, folds) for name in names]
    sets = [value for value in columns[0] if value is not None] if isinstance(expected, str) else []
    if sets and all(isinstance(value, list) and all(isinstance(label, str) for label in value) for value in sets):
        labels = sorted({label for value in sets for label in value})
        return np.array([[int(label in (value or ())) for label in labels] for value in columns[0]]), labels
    arrays = [_labels(name, values) for name, values in zip(names, columns, strict=True)]
    if len({array.dtype.kind for array in arrays}) > 1:
        raise SpecError(f"estimator: the targets {', '.join(names)} are of several types; give them one type")
    return arrays[0] if len(arrays) == 1 else np.column_stack(arrays), None


def _values_to_learn(dataset: Dataset, name: str, folds: Folds) -> list[Any]:
    """The values of a column; a missing one of a row that is learnt from is refused."""
    values = [value for batch in dataset.columns([name]) for value in read_column(batch, name)]
    learnt = (folds.numbers == NOT_TESTED).any(axis=0) | (folds.count > 1)
    for index, value, is_learnt in zip(dataset.indices, values, learnt, strict=True):
        if value is None and is_learnt:
            raise DataError(
                f"{name!r} of _index_ {index} is missing, and an estimator is to learn from it; leave it out"
            )
    return values


_KINDS_OF_LABELS = ({str}, {bool}, {int}, {float}, {int, float})


def _labels(name: str, values: list[Any]) -> Array:
    kinds = {type(value) for value in values if value is not None}
    if kinds not in _KINDS_OF_LABELS:
        shown = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise SpecError(f"estimator: {name!r} holds {shown}; estimators learn numbers, text or booleans, of one type")
    nothing = next(iter(kinds))()  # in place of what is never learnt
    whole = [nothing if value is None else value for value in values]
    return _objects(whole) if kinds == {str} else np.array(whole)


def _objects(values: list[Any]) -> Array:
    found = np.empty(len(values), object)
    found[:] = values
    return found


def _weights(dataset: Dataset, model: Any) -> Array:
    if dataset.roles.weight is None:
        raise SpecError("estimator: weighted, but the dataset has no weight; give the role weight a column")
    if "sample_weight" not in inspect.signature(model.fit).parameters:
        raise SpecError(f"estimator: weighted, but fit of {type(model).__name__} takes no sample_weight")
    return _floats(_table(dataset, [dataset.roles.weight]).column(0))


def _table(dataset: Dataset, names: list[str]) -> pa.Table:
    schema = pa.schema([dataset.schema.field(name) for name in names])
    return pa.Table.from_batches(dataset.columns(names), schema)


def _is_number(field: pa.Field) -> bool:
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(is_kind(field.type) for is_kind in kinds)


def _floats(column: pa.ChunkedArray) -> Array:
    return column.cast(pa.float64(), safe=False).to_numpy()  # type: ignore[no-any-return]


# -- what comes out


def _answers(model: Any, features: Any, targets: list[str] | None, positive: Any) -> list[Any]:
    """The response to each row of features."""
    predicted = np.asarray(model.predict(features)).reshape(features.shape[0], -1)
    n_targets = 1 if targets is None else len(targets)
    if predicted.shape[1] != n_targets:
        raise ValueError(f"predict returned {predicted.shape[1]} values a row instead of {n_targets}")
    probabilities: list[Any] = [None] * n_targets
    classes: Any = probabilities
    if hasattr(model, "predict_proba") and hasattr(model, "classes_"):
        predicted_probabilities = model.predict_proba(features)
        if n_targets == 1:
            probabilities, classes = [predicted_probabilities], [model.classes_]
        elif isinstance(predicted_probabilities, list):
            probabilities, classes = predicted_probabilities, model.classes_
    found = [_target_outputs(predicted[:, i], probabilities[i], classes[i], positive) for i in range(n_targets)]
    return found[0] if targets is None else [dict(zip(targets, row, strict=True)) for row in zip(*found, strict=True)]


def _set_answers(model: Any, features: Any, labels: Sequence[str]) -> list[Any]:
    """The set of labels of each row of features, with the probability of each label if the estimator gives them."""
    predicted = np.asarray(_dense(model.predict(features)))
    if predicted.shape != (features.shape[0], len(labels)):
        raise ValueError(f"predict returned the shape {predicted.shape}, not a column for each of {len(labels)} labels")
    sets = [[labels[place] for place in np.flatnonzero(row).tolist()] for row in predicted]
    if not hasattr(model, "predict_proba"):
        return sets
    found = model.predict_proba(features)
    if isinstance(found, list):  # a label that is always or never there has a single column
        found = np.column_stack([one[:, 1] if one.shape[1] > 1 else predicted[:, i] for i, one in enumerate(found)])
    chances = np.asarray(_dense(found), float).tolist()
    return [
        {"prediction": names, "probabilities": dict(zip(labels, row, strict=True))}
        for names, row in zip(sets, chances, strict=True)
    ]


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def _target_outputs(predicted: Array, probabilities: Any, classes: Any, positive: Any) -> list[Any]:
    if probabilities is None:
        return predicted.tolist()  # type: ignore[no-any-return]
    labels = np.asarray(classes).tolist()
    if positive is not None and positive not in labels:
        raise ValueError(f"it has learnt no class {positive!r}, which is to be the positive one; stratify the split")
    place = {label: i for i, label in enumerate(labels)}
    of = {} if positive is None else {"confidence_of": labels[place[positive]]}
    texts = [label if isinstance(label, str) else identity.encode(label).decode() for label in labels]
    return [
        {
            "prediction": label,
            "confidence": row[place[label if positive is None else positive]],
            **of,
            "probabilities": dict(zip(texts, row, strict=True)),
        }
        for label, row in zip(predicted.tolist(), np.asarray(probabilities).tolist(), strict=True)
    ]
