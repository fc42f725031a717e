"""The probabilities of `toxicity` are those of alt-profanity-check, whose files are never unpickled."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pytest

from evaluand.core.errors import SpecError
from evaluand.evaluation.providers.offence_model import OffenceModel

package = find_spec("profanity_check")
if package is None or package.origin is None:
    pytest.skip("needs the extra toxicity: pip install 'evaluand[toxicity]'", allow_module_level=True)
PACKAGE = Path(package.origin).parent


class Hostile:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


@pytest.fixture(scope="module")
def model() -> OffenceModel:
    return OffenceModel.read(PACKAGE)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    shutil.copytree(PACKAGE / "data", tmp_path / "data")
    return tmp_path


def make_texts(model: OffenceModel) -> list[str]:
    """Texts of known and unknown words, in all cases, of no word and of many."""
    random, known = Random(3), sorted(model.places)
    unknown = ["é", "ÀB", "x" * 50, "İstanbul", "ß", "1", "a", "don't", "naïve", "１２", "_x_"]
    sizes = [random.choice([0, 1, 2, 5, 20, 80]) for _ in range(2000)]
    texts = [
        " ".join(random.choice(known if random.random() < 0.8 else unknown) for _ in range(size)) for size in sizes
    ]
    cased = [random.choice([str.upper, str.title, str.lower])(text) for text in texts]
    return [*cased, "", " ", "You stupid idiot!", "idiot " * 5000]


def test_probabilities_are_those_of_the_library(model: OffenceModel) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its scikit-learn may be another than that of its files
        from profanity_check import predict_prob
    texts = make_texts(model)
    ours, theirs = [model.probability(text) for text in texts], [*map(float, predict_prob(texts))]
    assert max(abs(one - other) for one, other in zip(ours, theirs, strict=True)) <= 1e-12
    assert min(ours) < 0.001
    assert max(ours) > 0.999


def test_the_words_that_scikit_learn_leaves_out_are_not_known(model: OffenceModel) -> None:
    words = pytest.importorskip("sklearn.feature_extraction.text").ENGLISH_STOP_WORDS
    assert not words & {*model.places}


def test_the_library_is_not_imported() -> None:
    code = (
        "import sys\n"
        "from evaluand.evaluation.providers.english import Toxicity\n"
        "assert Toxicity().toxicity('You stupid idiot!').value > 0.9\n"
        "print(*sorted({'joblib', 'pickle', 'profanity_check', 'sklearn'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {*done.stdout.split()} - {"pickle"}  # NumPy imports that


@pytest.mark.parametrize("name", ["vectorizer.joblib", "model.joblib"])
def test_a_hostile_pickle_in_the_place_of_a_file_is_refused_and_not_run(copied: Path, name: str) -> None:
    (copied / "data" / name).write_bytes(pickle.dumps(Hostile(copied / "made")))
    with pytest.raises(SpecError) as refused:
        OffenceModel.read(copied)
    assert str(refused.value) == (
        f"{copied}/data/{name}: is a pickle that names '{os.mkdir.__module__}.mkdir', which its data do not need; "
        "install it again: pip install --force-reinstall alt-profanity-check"
    )
    assert not (copied / "made").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"lowercase\x94\x88", b"lowercase\x94\x89", "is not the model that"),
        (b"\\w\\w+", b"\\S\\w+", "is not the model that"),
        (b"TfidfVectorizer", b"CountVectorizer", "is not the model that"),
        (b"idf_\x94", b"idfs\x94", "is not the model that"),
        (b"numpy_pickle", b"numpy_tickle", "is no pickle, or is damaged"),
    ],
)
def test_a_file_of_another_model_is_refused(copied: Path, old: bytes, new: bytes, message: str) -> None:
    path = copied / "data" / "vectorizer.joblib"
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))
    with pytest.raises(SpecError, match=rf"vectorizer\.joblib: {message}"):
        OffenceModel.read(copied)


def test_a_missing_file_is_reported_with_its_place(copied: Path) -> None:
    (copied / "data" / "model.joblib").unlink()
    with pytest.raises(SpecError, match=r"model\.joblib: cannot be read: No such file or directory; install it again"):
        OffenceModel.read(copied)
