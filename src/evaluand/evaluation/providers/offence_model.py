"""The model of alt-profanity-check, computed from the numbers in its files; neither pickles nor scikit-learn are run.

Its files are pickles of scikit-learn's objects, whose numbers `read_inert` takes out. They are read from the installed
package, of which no part is imported. The steps are those of scikit-learn, number by number in the same order, so that
the probabilities are the same to the last bit:

    words           two or more letters or digits each, in lower case
    row             how often each known word occurs · its idf, divided by the Euclidean length of the row
    of each of five
    linear models   1 / (1 + exp(a · (row · weights + intercept) + b)), as Platt calibrates a margin
    probability     their mean
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from evaluand.core.errors import DataError, SpecError
from evaluand.core.files.inert_pickle import Array, Inert, read_inert
from evaluand.core.files.regular import read_regular_file

_T = TypeVar("_T")

_MOST_BYTES: Final = 4 << 20
_LARGEST: Final = 700.0  # whose exponential is still a number
_PACKAGES: Final = ("joblib", "numpy", "sklearn")
_TEXT: Final = "sklearn.feature_extraction.text"
_WORDS: Final = {
    "analyzer": "word",
    "binary": False,
    "lowercase": True,
    "ngram_range": (1, 1),
    "norm": "l2",
    "preprocessor": None,
    "strip_accents": None,
    "sublinear_tf": False,
    "token_pattern": r"(?u)\b\w\w+\b",
    "tokenizer": None,
    "use_idf": True,
}
"""The settings that the steps above assume. None of scikit-learn's English stop words is among the words known."""


@dataclass(frozen=True)
class LinearModel:
    """One linear model over words, with the calibration of its margin."""

    weights: Sequence[float]
    intercept: float
    a: float
    b: float

    def probability(self, row: Mapping[int, float]) -> float:
        margin = 0.0
        for place, value in row.items():
            margin += self.weights[place] * value
        exponent = self.a * (margin + self.intercept) + self.b
        return 1 / (1 + math.exp(min(exponent, _LARGEST)))


@dataclass(frozen=True)
class OffenceModel:
    """How probable it is that a text offends."""

    places: Mapping[str, int]
    idf: Sequence[float]
    models: Sequence[LinearModel]

    @classmethod
    def read(cls, folder: Path) -> OffenceModel:
        """The model in the folder of the package `profanity_check`.

        Raises:
            SpecError: a file cannot be read, or has something else.
        """
        places, idf = _read(folder / "data" / "vectorizer.joblib", _word_parts)
        return cls(places, idf, _read(folder / "data" / "model.joblib", partial(_linear_models, len(idf))))

    def probability(self, text: str) -> float:
        total = 0.0
        row = self._row(text)
        for model in self.models:
            total += model.probability(row)
        return total / len(self.models)

    def _row(self, text: str) -> dict[int, float]:
        counts = Counter(self.places[word] for word in _WORD.findall(text.lower()) if word in self.places)
        row = {place: counts[place] * self.idf[place] for place in sorted(counts)}
        squares = 0.0  # added one by one, as scikit-learn does; sum() and math.hypot round otherwise
        for value in row.values():
            squares += value * value
        length = math.sqrt(squares)
        return {place: value / length for place, value in row.items()}


_WORD: Final = re.compile(str(_WORDS["token_pattern"]))


def _read(path: Path, parts: Callable[[Any], _T]) -> _T:
    """Parts of what a file of the package has."""
    try:
        content = read_regular_file(path, _MOST_BYTES, follow_link=True)
        return parts(read_inert(content, _PACKAGES))
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
    except DataError as error:
        why = str(error)
    except (ValueError, TypeError, LookupError, AttributeError):
        why = "is not the model that this version of evaluand knows"
    raise SpecError(f"{path}: {why}; install it again: pip install --force-reinstall alt-profanity-check")


def _word_parts(value: Any) -> tuple[dict[str, int], Sequence[float]]:
    """The place of each known word, and the idf of each place."""
    settings = _attributes(value, f"{_TEXT}.TfidfVectorizer")
    _require(all(settings[name] == wanted for name, wanted in _WORDS.items()))
    places = settings["vocabulary_"]
    idf = _numbers(_attributes(settings["_tfidf"], f"{_TEXT}.TfidfTransformer")["idf_"])
    _require(all(type(place) is int for place in places.values()) and sorted(places.values()) == [*range(len(idf))])
    return places, idf


def _linear_models(n_words: int, value: Any) -> list[LinearModel]:
    fitted = _attributes(value, "sklearn.calibration.CalibratedClassifierCV")
    _require(fitted["method"] == "sigmoid" and _numbers(fitted["classes_"]) == (0, 1))
    models = [_linear_model(each) for each in fitted["calibrated_classifiers_"]]
    _require(bool(models) and all(len(model.weights) == n_words for model in models))
    return models


def _linear_model(value: Any) -> LinearModel:
    parts = _attributes(value, "sklearn.calibration._CalibratedClassifier")
    linear = _attributes(parts["estimator"], "sklearn.svm._classes.LinearSVC")
    (calibrator,) = parts["calibrators"]
    curve = _attributes(calibrator, "sklearn.calibration._SigmoidCalibration")
    (intercept,) = _numbers(linear["intercept_"])
    a, b = curve["a_"], curve["b_"]
    _require(all(isinstance(each, float) and math.isfinite(each) for each in (a, b)))
    return LinearModel(_numbers(linear["coef_"]), intercept, a, b)


def _attributes(value: Any, maker: str) -> Mapping[str, Any]:
    _require(isinstance(value, Inert) and value.maker == maker and isinstance(value.state, dict))
    attributes: Mapping[str, Any] = value.state
    return attributes


def _numbers(value: Any) -> Sequence[float]:
    _require(isinstance(value, Array) and all(map(math.isfinite, value.numbers)))
    numbers: Sequence[float] = value.numbers
    return numbers


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError
