"""Truth and prediction with their types: what metrics such as F1, AUC, R² and every measure of fairness read.

A prediction of the wrong type gives its row the status `failed` with the value in the reason, so it stays in the
denominator. It is never converted: the text `"1"` and the integer `1` would be two classes or one, depending on who
converted them. `evaluation/prediction_table.py` builds the same table from whole columns.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from evaluand.core import identity
from evaluand.core.errors import DataError, described
from evaluand.core.json_like import plain_numbers
from evaluand.core.parameters import Text
from evaluand.evaluation.scorer import NO_ANSWER, ExpectationScorer, Score, is_number, read_field, read_number
from evaluand.models.extraction import COLUMN
from evaluand.store.tables import SCORED


@dataclass(frozen=True, kw_only=True)
class Prediction(ExpectationScorer):
    """Columns `truth`, `prediction`, `confidence`, `confidence_of`, `scores`, `weight`; the value is 1 if they agree.

    Numbers have no value, since they are hardly ever equal. Abstains where the dataset has no truth, and where the
    prediction is null. Called once for each target, with the output and the truth of that target.

    An output that is an object has the prediction, and optionally a confidence, under the keys below. Any other output
    is the prediction itself. Probabilities, an object label → number, are the `scores` of the classes, and so is a
    confidence that is such an object; without a number as confidence, the confidence is the prediction's own score.

    `confidence_of` is the class whose probability the confidence is: the one that the output names, else the prediction
    if the confidence is the score of that label, else null, since it is unknown.

    Attributes:
        type: what truth and prediction are: `text`, `integer` (64 bits), `number` (finite), `boolean`, or `json` for
            anything else, compared by its canonical text, numbers by value. `labels` are lists of different texts,
            compared as sets: their order does not matter, and `[]` is an answer like another.
        prediction_key: None where an object is itself the prediction.
        confidence_key: None to ignore confidences. An object without this key has none.
        confidence_of_key: the key of the class that the confidence is of, if not always the prediction.
        probabilities_key: the key of the scores of all classes; only an object is read, and not where predictions are
            numbers. Of `labels`, each label has a score, and the set has no confidence.

    Raises:
        SpecError: there is no such type.

    Example:
        >>> Prediction().score({"prediction": "cat", "confidence": 0.9}, "dog").columns
        {'truth': 'dog', 'prediction': 'cat', 'confidence': 0.9, 'confidence_of': None, 'scores': None, 'weight': None}
        >>> output = {"prediction": "cat", "probabilities": {"cat": 0.9, "dog": 0.1}}
        >>> columns = Prediction().score(output, "dog").columns
        >>> columns["scores"], columns["confidence"], columns["confidence_of"]
        ({'cat': 0.9, 'dog': 0.1}, 0.9, 'cat')
        >>> Prediction(type="labels").score(["sad", "calm"], ["calm", "sad"]).value
        1.0
    """

    kind = "prediction"
    version = 6
    cheap = True
    by_target = True
    arguments = ("output", "expected", "weight")

    type: Literal["text", "integer", "number", "boolean", "labels", "json"] = "text"
    prediction_key: Text | None = "prediction"
    confidence_key: Text | None = "confidence"
    confidence_of_key: Text | None = "confidence_of"
    probabilities_key: Text | None = "probabilities"

    @property
    def columns(self) -> Mapping[str, str]:
        column = _TYPES[self.type][0]
        confidences = {"confidence": "double", "confidence_of": column, "scores": "scores"}
        return {"truth": column, "prediction": column, **confidences, "weight": "double"}

    @property
    def readable(self) -> tuple[str, ...]:
        return tuple(self.columns) if self.type == "number" else super().readable

    def grade(self, output: Any, truth: Any, *others: Any) -> Score:
        """The truth and the prediction of one row, with their agreement."""
        predicted, fields = self._split(output)
        if predicted is None:
            read = fields.get(COLUMN)  # of a reply, such as one that names several options
            reason = read.get("reason") if isinstance(read, Mapping) else None
            return self.abstained(reason if isinstance(reason, str) else NO_ANSWER.reason, truth)
        prediction, weight = self._check_type("prediction", predicted), others[0] if others else None
        columns = {
            "truth": truth,
            "prediction": prediction,
            **self._confidences(prediction, fields),
            "weight": None if weight is None else read_number("the weight", weight, 0),
        }
        return Score(self._agreement(truth, prediction), columns=columns)

    def read_expected(self, expected: Any) -> Any:
        return self._check_type("truth", expected)

    def columns_of(self, truth: Any) -> Mapping[str, Any]:
        return {"truth": truth}

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:
        truth = self.read_expected(expected)
        if any(self.grade(output, truth).status != SCORED for output in outputs):
            raise DataError("no prediction: the task gave null")

    def _split(self, output: Any) -> tuple[Any, Mapping[str, Any]]:
        """The prediction, and the object with its confidence."""
        if self.prediction_key is None or not isinstance(output, Mapping):
            return output, {}
        remedy = (
            "; set prediction_key to the key of the prediction, or to null where the whole output is the prediction"
        )
        return read_field("no prediction: the output", output, self.prediction_key, remedy), output

    def _confidences(self, prediction: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The confidence, the class that it is of and the scores of all classes; None for those that are missing."""
        names = (self.confidence_key, self.confidence_of_key, self.probabilities_key)
        stated, of, probabilities = (None if name is None else fields.get(name) for name in names)
        of_classes = self.type not in ("number", "labels")
        scores: dict[str, float] | None = None
        if isinstance(stated, Mapping):
            scores, stated = self._scores(stated), None
        elif self.type != "number" and isinstance(probabilities, Mapping):
            scores = self._scores(probabilities)
        own = scores.get(self._label_text(prediction)) if scores is not None and of_classes else None
        confidence = own if stated is None else read_number("the confidence", stated)
        if confidence is None or not of_classes:
            of = None
        elif stated is None or (of is None and confidence == own):
            of = prediction
        elif of is not None:
            of = self._check_type("class of the confidence", of)
        return {"confidence": confidence, "confidence_of": of, "scores": scores}

    def _scores(self, by_label: Mapping[str, Any]) -> dict[str, float]:
        """The score of each class, by its label's text."""
        if self.type == "number":
            problem = "the confidence is an object of scores by class, but the prediction is a number"
            raise DataError(f"{problem}; give one number")
        scores = by_label.items()
        return {self._read_label(text): read_number(f"the score of {text!r}", score) for text, score in scores}

    def _read_label(self, text: str) -> str:
        """The text of a label from the key of a JSON object."""
        if self.type == "integer" and not _INTEGER.fullmatch(text):
            raise DataError(
                f"the scores have the label {text!r}, which is not an integer; set the scorer's type to text"
            )
        if self.type == "boolean" and text not in ("true", "false"):
            raise DataError(f"the scores have the label {text!r}, which is neither 'true' nor 'false'")
        return _encode("label", text).decode() if self.type == "json" else text

    def _label_text(self, value: Any) -> str:
        return value if self.type == "text" else _encode("prediction", value).decode()

    def _agreement(self, truth: Any, prediction: Any) -> float | None:
        if self.type == "number":
            return None
        if self.type == "json":
            return float(_encode("truth", truth) == _encode("prediction", prediction))
        return float(truth == prediction)

    def _check_type(self, name: str, value: Any) -> Any:
        return _TYPES[self.type][1](name, value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong_type(name, value, "text")
    return value


def _integer(name: str, value: Any) -> int:
    if isinstance(value, float) and value.is_integer():  # as pandas writes integers of a column with a gap
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong_type(name, value, "an integer")
    if not -(2**63) <= value < 2**63:
        raise DataError(f"the {name} is {described(value)}, which does not fit in 64 bits; use the type json or number")
    return value


def _number(name: str, value: Any) -> float:
    if not isinstance(value, float) and not is_number(value):
        raise _wrong_type(name, value, "a number")
    return read_number(f"the {name}", value)


def _boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong_type(name, value, "true or false")
    return value


def _labels(name: str, value: Any) -> list[str]:
    """The labels of a set in order."""
    if not isinstance(value, list | tuple):
        raise _wrong_type(name, value, "a list of labels")
    labels = [_text(f"{name}'s label {place}", label) for place, label in enumerate(value)]
    twice = next((label for place, label in enumerate(labels) if label in labels[:place]), None)
    if twice is not None:
        raise DataError(f"the {name} has the label {twice!r} twice; a set has each label once")
    return sorted(labels)


def _encode(name: str, value: Any) -> bytes:
    try:
        return identity.encode(value)
    except DataError as error:
        raise DataError(f"the {name} cannot be stored as data: {error}") from None


def _wrong_type(name: str, value: Any, expected_type: str) -> DataError:
    written = f", as in {{kind: prediction, type: {_type_of(value)}}}" if name == "truth" else ""
    remedy = f"set the scorer's type to what the data are{written}, or convert them"
    return DataError(f"the {name} is {described(value)}, not {expected_type}; {remedy}")


def _type_of(value: Any) -> str:
    """The type of the scorer that takes a value."""
    if isinstance(value, list | tuple) and all(isinstance(label, str) for label in value):
        return "labels"
    names = {bool: "boolean", int: "integer", float: "number", str: "text"}
    return names.get(type(value), "json")


_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")

_TYPES: Final[Mapping[str, tuple[str, Callable[[str, Any], Any]]]] = {
    "text": ("string", _text),
    "integer": ("int64", _integer),
    "number": ("double", _number),
    "boolean": ("bool", _boolean),
    "labels": ("labels", _labels),
    "json": ("json", lambda name, value: plain_numbers(value)),
}
"""Type → the type of its columns, and how a value is checked."""
