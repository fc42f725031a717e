"""`jury`: several models judge by one rubric, and their agreement is part of the score.

Source: Verga et al. 2024, Replacing Judges with Juries, arXiv:2404.18796.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final

from evaluand.core import identity
from evaluand.core.errors import ParameterError, TaskError, described, nearest, storable_message
from evaluand.engine.budget import BudgetReached
from evaluand.evaluation.scorer import Score
from evaluand.judges.combination import COMBINE, agreement, most_frequent
from evaluand.judges.model_judge import (
    ComparisonJudge,
    ModelJudge,
    ResponseJudge,
    collect_faults,
    read_model,
    read_paths,
    read_rubric,
)
from evaluand.judges.outcomes import AGREEMENT, abstained, described_score
from evaluand.judges.questioner import Questioner, ask_together
from evaluand.judges.rubric import Rubric
from evaluand.judges.scale import Fault
from evaluand.models.chat_model import ChatModel

MAJORITY: Final = "majority"
COMBINATIONS: Final = (*COMBINE, MAJORITY)
SPREAD: Final = "spread"
"""The column of a jury on one response: the highest value of its members minus the lowest."""


@dataclass(frozen=True, kw_only=True)
class _SeveralModels(ModelJudge):
    """A judge that asks several models by one rubric."""

    rubric: Any
    models: Sequence[Any]
    combine: str = "mean"
    quorum: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        faults = list[Fault]()
        rubric = collect_faults(faults, ("rubric",), lambda: read_rubric(self.rubric, compares=self.compares))
        models = list(self._read_models(faults))
        paths = rubric and collect_faults(faults, ("variables",), lambda: read_paths(self.variables, rubric.variables))
        if faults := [*faults, *self._faults(rubric, len(models))]:
            raise ParameterError(faults)
        for name, value in {"rubric": rubric, "models": tuple(models), "variables": paths}.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rubric.title}, {list(self.models)!r})"

    @cached_property
    def questioners(self) -> Sequence[Questioner]:
        return [Questioner(self.rubric, model, first=number) for number, model in enumerate(self.models)]

    @property
    def questions_digest(self) -> str:
        members = sorted(questioner.digest for questioner in self.questioners)
        return identity.digest({"members": members, "combine": self.combine, "quorum": self.quorum}).hex()

    async def decide(self, values: Mapping[str, Any]) -> Score:
        found = await ask_together([_answer(questioner, values) for questioner in self.questioners])
        votes = [each for each in found if isinstance(each, Score) and each.value is not None]
        data = {"members": [_member_data(model, each) for model, each in zip(self.models, found, strict=True)]}
        if len(votes) >= (len(self.models) if self.quorum is None else self.quorum):
            return self._combined(votes, data)
        errors = [each for each in found if isinstance(each, TaskError)]
        if errors:
            raise errors[0]
        first = next(each for each in found if isinstance(each, Score) and each.value is None)
        return first if first.data is None else abstained(first.reason, first.explanation, data)

    def _combined(self, votes: Sequence[Score], data: dict[str, Any]) -> Score:
        values = [vote.value for vote in votes if vote.value is not None]
        labels = [vote.label if vote.label is not None else f"{vote.value:g}" for vote in votes]
        columns = {AGREEMENT: agreement(labels), SPREAD: max(values) - min(values)}
        label = most_frequent(labels) if all(vote.label is not None for vote in votes) else None
        explanation = next((vote.explanation for vote in votes if vote.label == label), votes[0].explanation)
        if self.combine != MAJORITY:
            return Score(COMBINE[self.combine](values), label, data, explanation, columns=columns)
        if label is None or 2 * labels.count(label) <= len(labels):
            return abstained("no majority", f"the members say {', '.join(labels)}", data)._replace(columns=columns)
        value = next(vote.value for vote in votes if vote.label == label)
        return Score(value, label, data, explanation, columns=columns)

    def _read_models(self, faults: list[Fault]) -> Iterator[ChatModel]:
        given: Any = self.models
        if not isinstance(given, list | tuple) or len(given) < 2:
            faults.append((("models",), f"are {described(given)}; list at least two models"))
            return
        for number, model in enumerate(given):
            found = collect_faults(faults, ("models", number), partial(read_model, model))
            if found is not None:
                yield found
            if model in given[:number]:
                faults.append((("models", number), "is named twice; a member has one vote"))

    def _faults(self, rubric: Rubric | None, n_models: int) -> Iterator[Fault]:
        if self.combine not in COMBINATIONS:
            hint = nearest(str(self.combine), COMBINATIONS)
            yield ("combine",), f"is {described(self.combine)}; give one of {', '.join(COMBINATIONS)}{hint}"
        elif self.combine == MAJORITY and rubric is not None and rubric.parts is not None:
            yield (
                ("combine",),
                f"cannot be {MAJORITY}: {rubric.name} has a verdict for each part and none for the whole",
            )
        quorum: Any = self.quorum
        if quorum is not None and (type(quorum) is not int or not 1 <= quorum <= n_models):
            yield ("quorum",), f"is {described(quorum)}; give how many of the models must have a verdict"


@dataclass(frozen=True, kw_only=True, repr=False)
class Jury(_SeveralModels, ResponseJudge):
    """The verdicts of several models on a response, by one rubric, as one score.

    The column `agreement` is the share of pairs of members with the same verdict, `spread` the difference of the
    highest and the lowest value. The replies of all members are in `data`.

    Attributes:
        rubric: the name of one of evaluand's rubrics, the path of a file, or the rubric itself.
        models: the members, at least two: each `PROVIDER/NAME`, or its address and settings.
        combine: how the value is computed: the `mean`, `median`, `min` or `max` of the members, or the verdict of the
            `majority`. Without a majority the jury abstains.
        quorum: how many members must have a verdict; by default all. With fewer, the jury abstains, or fails if a
            request failed.
        variables: paths of variables of the rubric that are no columns, such as `{context: output.passages}`.

    Raises:
        ParameterError: lists every fault of rubric, models and parameters.

    Example:
        >>> from evaluand.models import ChatModel
        >>> models = [ChatModel("http://127.0.0.1:8080/v1", name, version="1") for name in ("small", "large")]
        >>> Jury(rubric="correctness", models=models, combine="majority").columns
        {'agreement': 'double', 'spread': 'double'}
    """

    kind = "jury"
    version = 1

    @property
    def columns(self) -> Mapping[str, str]:
        return {AGREEMENT: "double", SPREAD: "double"}

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:  # type: ignore[override]
        low, high = self.rubric.scale.range
        return {"value": (low, high), AGREEMENT: (0.0, 1.0), SPREAD: (0.0, high - low)}

    @property
    def higher_is_better(self) -> bool | None:
        return self.rubric.higher_is_better  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True, repr=False)
class PairwiseJury(_SeveralModels, ComparisonJudge):
    """The verdicts of several models on which of two responses is better, by one rubric, as one outcome.

    Attributes:
        rubric: the name of one of evaluand's rubrics, the path of a file, or the rubric itself.
        models: the members, at least two: each `PROVIDER/NAME`, or its address and settings.
        combine: how the outcome is computed: the `mean`, `median`, `min` or `max` of the members, or the verdict of the
            `majority`. Without a majority the jury abstains.
        quorum: how many members must have a verdict; by default all.
        variables: paths of variables of the rubric that are no columns.

    Raises:
        ParameterError: lists every fault of rubric, models and parameters.
    """

    kind = "jury"
    version = 1


async def _answer(questioner: Questioner, values: Mapping[str, Any]) -> Score | TaskError:
    """The opinion of a member, or the error of its request; an error that ends the run is raised."""
    try:
        return await questioner.judge(values)
    except TaskError as error:
        if error.stops or isinstance(error, BudgetReached):
            raise
        return error


def _member_data(model: ChatModel, found: Score | TaskError) -> dict[str, Any]:
    own = described_score(found) if isinstance(found, Score) else {"error": storable_message(found)}
    return {"model": model.name, **own}
