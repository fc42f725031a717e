"""`judge`: a model decides by a rubric what a response is worth, or which of two is better.

    rubric + values of the row ──▶ messages ──▶ model ──▶ reply ──▶ verdict ──▶ score
                                                          └─ unreadable: abstained, and stored

The rubric is data (`evaluand.judges.rubric`), the model is any `ChatModel`. A reply that cannot be read
never becomes a number. If a request fails, the score fails, as with any scorer.

In comparisons the matches decide which pairs are shown and in which order. By default each pair is shown in both
orders, because models favour one position (Zheng et al. 2023, Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena,
arXiv:2306.05685, 3.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from evaluand.core.errors import ParameterError
from evaluand.evaluation.scorer import Score
from evaluand.judges.model_judge import (
    ComparisonJudge,
    ModelJudge,
    ResponseJudge,
    collect_faults,
    read_model,
    read_paths,
    read_rubric,
)
from evaluand.judges.outcomes import AGREEMENT
from evaluand.judges.questioner import Questioner
from evaluand.judges.scale import Fault


@dataclass(frozen=True, kw_only=True)
class _OneModel(ModelJudge):
    """A judge that asks one model by one rubric."""

    rubric: Any
    model: Any
    samples: int = 1
    from_logprobs: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        faults = list[Fault]()
        rubric = collect_faults(faults, ("rubric",), lambda: read_rubric(self.rubric, compares=self.compares))
        model = collect_faults(faults, ("model",), lambda: read_model(self.model))
        paths = rubric and collect_faults(faults, ("variables",), lambda: read_paths(self.variables, rubric.variables))
        if rubric is not None and model is not None:
            collect_faults(faults, (), lambda: Questioner(rubric, model, self.samples, self.from_logprobs))
        if faults:
            raise ParameterError(faults)
        for name, value in {"rubric": rubric, "model": model, "variables": paths}.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rubric.title}, {self.model!r})"

    @cached_property
    def questioner(self) -> Questioner:
        """The rubric, the model and the settings of the questions."""
        return Questioner(self.rubric, self.model, self.samples, self.from_logprobs)

    @property
    def questioners(self) -> Sequence[Questioner]:
        return (self.questioner,)

    @property
    def questions_digest(self) -> str:
        return self.questioner.digest

    async def decide(self, values: Mapping[str, Any]) -> Score:
        return await self.questioner.judge(values)


@dataclass(frozen=True, kw_only=True, repr=False)
class Judge(_OneModel, ResponseJudge):
    """A model's verdict on a response, by a rubric.

    Abstains if the reply cannot be read (no JSON, other keys or text, off the scale, refused, empty, cut off), and
    stores the reply in `data`. Also abstains if the row lacks a variable of the rubric.

    Attributes:
        rubric: the name of one of evaluand's rubrics, the path of a file, or the rubric itself.
        model: the model that judges: `PROVIDER/NAME`, or its address and settings.
        samples: how often each question is asked; the value is the mean, the column `agreement` the share of pairs of
            replies with the same verdict.
        from_logprobs: the value is the expected one, by the probabilities of the verdicts.
        variables: paths of variables of the rubric that are no columns, such as `{context: output.passages}`.

    Raises:
        ParameterError: lists every fault of rubric, model and parameters.

    Example:
        >>> from evaluand.models import ChatModel
        >>> judge = Judge(rubric="correctness", model=ChatModel("http://127.0.0.1:8080/v1", "small", version="1"))
        >>> judge.ranges, judge.higher_is_better, len(judge.judge_digest)
        ({'value': (0.0, 1.0)}, True, 32)
    """

    kind = "judge"
    version = 1

    @property
    def columns(self) -> Mapping[str, str]:
        return {AGREEMENT: "double"} if self._has_agreement else {}

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:  # type: ignore[override]
        agreement = {AGREEMENT: (0.0, 1.0)} if self._has_agreement else {}
        return {"value": self.rubric.scale.range, **agreement}

    @property
    def higher_is_better(self) -> bool | None:
        return self.rubric.higher_is_better  # type: ignore[no-any-return]

    @property
    def _has_agreement(self) -> bool:
        """Whether a question is asked several times."""
        return self.samples > 1 and self.rubric.parts is None


@dataclass(frozen=True, kw_only=True, repr=False)
class PairwiseJudge(_OneModel, ComparisonJudge):
    """A model's verdict on which of two responses is better, by a rubric.

    Abstains if the reply cannot be read, and stores the reply in `data`.

    Attributes:
        rubric: the name of one of evaluand's rubrics, the path of a file, or the rubric itself.
        model: the model that judges: `PROVIDER/NAME`, or its address and settings.
        samples: how often each question is asked; the outcome is the mean.
        from_logprobs: the outcome is the expected one, by the probabilities of the verdicts.
        variables: paths of variables of the rubric that are no columns.

    Raises:
        ParameterError: lists every fault of rubric, model and parameters.

    Example:
        >>> from evaluand.models import ChatModel
        >>> judge = PairwiseJudge(rubric="pairwise", model=ChatModel("http://127.0.0.1:8080/v1", "small"))
        >>> judge.rubric.material
        ('input', 'first', 'second')
    """

    kind = "judge"
    version = 1
