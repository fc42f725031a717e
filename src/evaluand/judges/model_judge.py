"""The common part of judges, whether they ask one model, several models, or several questions in turn.

A judge reads the variables of its rubrics from a row and gives a verdict; a reply that cannot be read becomes an
abstention. Its `judge_digest` covers rubrics, models, parameters and variables: measurements of a judge are valid for
one digest.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from evaluand.core.errors import DataError, ParameterError, SpecError, described
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.identity import encode
from evaluand.core.redaction import holds_secret
from evaluand.data.dataset import Example
from evaluand.evaluation.comparison_scorers import FIRST, SECOND, STRENGTH, ComparisonScorer
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.judges.judge_digest import ADDRESS, digest_judge
from evaluand.judges.questioner import Questioner
from evaluand.judges.rubric import Rubric, is_path
from evaluand.judges.scale import Fault, Scale
from evaluand.judges.variables import Variables, early_row, merge_columns
from evaluand.models.chat_model import RETRIES, ChatModel

if TYPE_CHECKING:
    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.evaluation.standing import ScorerStanding
    from evaluand.store.store import Store

_T = TypeVar("_T")


class ModelJudge:
    """A judge of responses, or of comparisons.

    Attributes:
        compares: whether it compares two responses.
    """

    kind: ClassVar[str]
    version: ClassVar[int]
    compares: ClassVar[bool] = False
    is_judge: ClassVar[bool] = True
    retries: ClassVar[int] = RETRIES
    transient: ClassVar[tuple[str, ...]] = ("TaskTimeout",)
    stops_alike: ClassVar[bool] = True
    variables: Mapping[str, str]

    @property
    @abstractmethod
    def questioners(self) -> Sequence[Questioner]:
        """The questions, each with its model."""

    @property
    @abstractmethod
    def questions_digest(self) -> str:
        """32 hexadecimal digits: a hash of rubrics, models and parameters."""

    @property
    def judge_digest(self) -> str:
        """32 hexadecimal digits: a hash of all that may change a verdict; a card is valid for one such hash."""
        identified = self.identify()
        return digest_judge(identified.spec, identified.parts)

    @property
    def rubrics(self) -> Sequence[Mapping[str, Any]]:
        """Its rubrics as they are stored with its verdicts, each once."""
        by_digest = {each.rubric.digest: each.rubric for each in self.questioners}
        return [{"title": rubric.title, "content": rubric.content} for rubric in by_digest.values()]

    @abstractmethod
    async def decide(self, values: Mapping[str, Any]) -> Score:
        """The score of a row.

        Args:
            values: those of the variables of the rubrics; None where the row has none.

        Raises:
            TaskError: a request failed.
        """

    @cached_property
    def reader(self) -> Variables:
        """Reads the variables of a row."""
        return Variables(variables_of(self.questioners), self.variables)

    def identify(self) -> Identity:
        if not type(self).__module__.startswith("evaluand."):  # a subclass may judge otherwise
            return code_identity("scorer", self)
        spec = {"kind": self.kind, "version": self.version, "judge": self.questions_digest, "variables": self.variables}
        asked = [questioner.spec for questioner in self.questioners]
        why = dict.fromkeys(why for each in self.questioners for why in each.model.identity(self.kind).unpinned)
        return Identity({**spec, "asked": asked}, not why, tuple(why), self._parts)

    @property
    def _parts(self) -> dict[str, str]:
        """The parts of its identity, to explain changes."""
        parts = {"variables": encode(self.variables).decode()}
        addresses = {(each.model.name, each.model.unpinned_address) for each in self.questioners}
        if unpinned := sorted((name, address) for name, address in addresses if address is not None):
            parts[ADDRESS] = encode(unpinned).decode()
        for number, each in enumerate(self.questioners, 1):
            prefix = f"{number}. " if len(self.questioners) > 1 else ""
            parts[f"{prefix}rubric"] = f"{each.rubric.title} {each.rubric.digest}"
            options = {name: option for name, option in each.spec.items() if name != "rubric"}
            parts |= {f"{prefix}{name}": encode(option).decode() for name, option in options.items()}
        return parts

    def prepare(self) -> None:
        """Raises a SpecError if a model cannot be asked, such as without its key, or a rubric must not be stored."""
        for questioner in self.questioners:
            questioner.model.check()
            if holds_secret(encode(questioner.rubric.content).decode()):
                raise SpecError(
                    f"the rubric {questioner.rubric.title!r} contains a secret; take it out, as rubrics are stored"
                    " with their verdicts"
                )

    def close(self) -> None:
        for questioner in self.questioners:
            questioner.model.close()

    def check_example(self, example: Mapping[str, Any]) -> None:
        """Raises a DataError if an example lacks a variable of the rubrics."""
        row = early_row(example)
        required = {name for each in self.questioners for name in each.rubric.required}
        if missing := [name for name in self.reader.missing_columns(row) if name in required]:
            columns = ", ".join(name for name, value in row.items() if value is not None)
            advice = f"say where it is, such as variables: {{{missing[0]}: output.{missing[0]}}}"
            raise DataError(f"the rubric reads {', '.join(missing)}, and the example has {columns}; {advice}")


class ResponseJudge(ModelJudge, Scorer):
    """A judge of one response."""

    sees_place = False

    async def score(self, output: Any, expected: Any, example: Example, source: Any = None) -> Score:  # type: ignore[override]
        """Asks about one response.

        Raises:
            TaskError: a request failed.
        """
        row = merge_columns(example.input, example.metadata, example.attributes)
        row |= {**(source or {}), "input": example.input, "output": output, "expected": expected}
        return await self.decide(self.reader.read(row))

    @classmethod
    def standing(cls, evaluation: Evaluation, name: str) -> ScorerStanding:
        """Whether a judge was measured, by its card."""
        from evaluand.judges.cards.standing import standing_of  # on use: needs NumPy

        return standing_of(evaluation, name)

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("output", "expected", "example") + (("source",) if self.reader.reads_source else ())

    @property
    def sees_times(self) -> bool:
        return self.reader.sees_times


class ComparisonJudge(ModelJudge, ComparisonScorer):
    """A judge of two responses."""

    compares = True

    async def compare(self, first: Any, second: Any, expected: Any, example: Example) -> Score:  # type: ignore[override]
        """Asks about two responses, in this order.

        Raises:
            TaskError: a request failed.
        """
        row = merge_columns(example.input, example.metadata, example.attributes)  # all that it reads of an example
        row |= {"input": example.input, FIRST: first, SECOND: second, "expected": expected}
        score = await self.decide(self.reader.read(row))
        return score._replace(columns={STRENGTH: _strength(score, self.questioners[0].rubric.scale)})

    @classmethod
    def standings(cls, store: Store, judges: Sequence[Any], source: str) -> Sequence[ScorerStanding]:
        """Whether the judges of matches were measured, by their cards."""
        from evaluand.judges.cards.standing import find_standing  # on use: needs NumPy

        return [find_standing(store, judge, source) for judge in judges]

    @property
    def arguments(self) -> tuple[str, ...]:
        return (FIRST, SECOND, "expected", "example")


def variables_of(questioners: Sequence[Questioner]) -> list[str]:
    """The variables that several questions read."""
    return list(dict.fromkeys(name for each in questioners for name in each.rubric.variables))


def read_rubric(what: Any, *, compares: bool = False) -> Rubric:
    """A rubric, for responses or for comparisons.

    Raises:
        SpecError: it is wrong, or for the other purpose.
    """
    rubric = Rubric.of(what)
    if rubric.compares and not compares:
        raise SpecError(f"{rubric.name} compares two responses; name it as the judge of matches")
    if compares and not rubric.compares:
        raise SpecError(f"{rubric.name} judges one response; a comparison needs the material first and second")
    return rubric


def with_rubrics(parameters: Any, change: Callable[[str], str]) -> Any:
    """The parameters of a judge, wherever they name the file of a rubric with another path.

    Example:
        >>> with_rubrics({"rubric": "mine.yaml", "nodes": {"a": {"rubric": "correctness"}}}, "folder/{}".format)
        {'rubric': 'folder/mine.yaml', 'nodes': {'a': {'rubric': 'correctness'}}}
    """
    if not isinstance(parameters, Mapping):
        return parameters
    return {
        name: change(value)
        if name == "rubric" and isinstance(value, str) and is_path(value)
        else with_rubrics(value, change)
        for name, value in parameters.items()
    }


def rubric_files(parameters: Any) -> list[str]:
    """The files of rubrics that the parameters of a judge name.

    Example:
        >>> rubric_files({"nodes": {"a": {"rubric": "mine.yaml"}, "b": {"rubric": "correctness"}}})
        ['mine.yaml']
    """
    found = list[str]()

    def note(path: str) -> str:
        found.append(path)
        return path

    with_rubrics(parameters, note)
    return found


def read_model(what: Any) -> ChatModel:
    """A model from what names it."""
    return what if isinstance(what, ChatModel) else ChatModel.of(what)


def read_paths(paths: Any, names: Sequence[str]) -> dict[str, str]:
    """The paths of variables.

    Raises:
        ParameterError: one is no path, or of no variable.
    """
    if not isinstance(paths, Mapping):
        raise ParameterError([((), f"are {described(paths)}; give variable: path")])
    return dict(Variables(names, paths).paths)


def collect_faults(faults: list[Fault], place: tuple[str | int, ...], make: Callable[[], _T]) -> _T | None:
    """The result of a function; None if it raises faults, which are added with their place."""
    try:
        return make()
    except ParameterError as error:
        faults += [((*place, *within), message) for within, message in error.faults]
    except SpecError as error:
        faults += [(place, line) for line in str(error).split("\n")]
    return None


def _strength(score: Score, scale: Scale) -> float | None:
    """How much better the winner is, if the scale says so."""
    level = None if score.label is None else scale.find(score.label)
    return None if level is None else level.strength
