"""Methods that judge with a model: each is a rubric on a scale of whole numbers, and what the judge sees.

    @judges("answer_relevance")
    def relevance(self, prompt, response):
        return {"input": prompt, "output": response}

A method that asks several questions is a coroutine instead, which receives its `options` and returns a `Score`. The
decorator gives the method the options of TruLens (`OPTIONS`), asks the model of its provider, and returns a
`Judgement`. The verdict, from `min_score_val` to `max_score_val`, is worth 0 to 1 in even steps. A reply that cannot be
read has no value, but a reason.
"""

from __future__ import annotations

import enum
import functools
import inspect
import operator
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from evaluand.core.errors import SpecError, alternatives, described
from evaluand.core.identity import json_text
from evaluand.core.json_like import to_json_like
from evaluand.core.text.templates import Template
from evaluand.engine.event_loop import run_coroutine
from evaluand.evaluation.provider import Judgement
from evaluand.evaluation.scorer import Score
from evaluand.interop.trulens.method_rubrics import method_rubric
from evaluand.judges.questioner import Questioner
from evaluand.judges.rubric import Rubric
from evaluand.judges.rubric_fields import ITEMS, MODEL, Parts
from evaluand.judges.scale import Scale

Material = Mapping[str, Any]
"""Variables of a rubric → what the judge sees; None is left out."""

_Method = Callable[..., Material] | Callable[..., Coroutine[Any, Any, Score]]

PARTS: Final = "parts"
"""The variable that holds the parts of a text, where they are given and not found by the judge."""

SCALE: Final = (0, 3)


class Criteria(enum.StrEnum):
    """Criteria that have a name; as `criteria`, they stand for evaluand's own words."""

    CONCISENESS = "conciseness"
    RELEVANCE = "relevance"
    CORRECTNESS = "correctness"
    COHERENCE = "coherence"
    HARMFULNESS = "harmfulness"
    MALICIOUSNESS = "maliciousness"
    HELPFULNESS = "helpfulness"
    CONTROVERSIALITY = "controversiality"
    MISOGYNY = "misogyny"
    CRIMINALITY = "criminality"
    INSENSITIVITY = "insensitivity"
    DEPTH = "depth"
    CREATIVITY = "creativity"
    DETAIL = "detail"


class OutputSpace(enum.Enum):
    """Scales that have a name."""

    LIKERT_0_3 = (0, 3)
    LIKERT_0_10 = (0, 10)
    BINARY = (0, 1)


@dataclass(frozen=True, kw_only=True)
class GroundednessConfigs:
    """How a text is divided into statements.

    Attributes:
        use_sent_tokenize: by sentences; else the model divides it into claims.
        filter_trivial_statements: whether statements that claim nothing are left out; by the model.
    """

    use_sent_tokenize: bool = True
    filter_trivial_statements: bool = True


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a method.

    Attributes:
        criteria: what to judge, in place of evaluand's own words; or a member of `Criteria`.
        additional_instructions: what the judge reads besides.
        examples: texts, or pairs of arguments and their verdict.
        min_score_val: the lowest verdict, worth 0, and `max_score_val` the highest, worth 1.
        output_space: the scale by its name, in place of the two.
        temperature: of the model; None for that of the provider.
        groundedness_configs: how a text is divided into statements.
    """

    criteria: str | None = None
    additional_instructions: str | None = None
    examples: Sequence[Any] | None = None
    min_score_val: int = 0
    max_score_val: int = 3
    output_space: OutputSpace | str | None = None
    temperature: float | None = None
    groundedness_configs: GroundednessConfigs | Mapping[str, bool] | None = None

    @property
    def scale(self) -> Scale:
        """The whole numbers, worth 0 to 1.

        Raises:
            SpecError: they are no scale.
        """
        low, high = self._ends
        return Scale.of({str(number): (number - low) / (high - low) for number in range(low, high + 1)})

    @property
    def _ends(self) -> tuple[int, int]:
        if self.output_space is not None:
            name = getattr(self.output_space, "name", self.output_space)
            spaces = {each.name: each.value for each in OutputSpace}
            if not isinstance(name, str) or name.upper() not in spaces:
                raise SpecError(f"output_space is {described(name)}{alternatives(str(name), list(spaces))}")
            ends: tuple[int, int] = spaces[name.upper()]
            return ends
        low, high = self.min_score_val, self.max_score_val
        if type(low) is not int or type(high) is not int or not 1 <= high - low <= _MOST:
            raise SpecError(
                f"min_score_val and max_score_val are {low!r} and {high!r}; give whole numbers, the lower one first, at"
                f" most {_MOST} apart"
            )
        return low, high


@dataclass(frozen=True)
class Judged:
    """What a method asks.

    Attributes:
        rubric: the name of its rubric.
        options: the names of those that it takes.
        reasons: whether the judge gives its reasons.
        scale: the lowest and the highest verdict, unless the options say otherwise.
    """

    rubric: str
    options: tuple[str, ...]
    reasons: bool = False
    scale: tuple[int, int] = SCALE

    @property
    def defaults(self) -> dict[str, Any]:
        """Option → its value if nothing else is said."""
        low, high = self.scale
        return {**{name: getattr(Options, name) for name in self.options}, "min_score_val": low, "max_score_val": high}

    def usual_rubric(self, options: Mapping[str, Any]) -> Rubric:
        """The rubric of calls that pass no options.

        Args:
            options: those of the provider.
        """
        return self.rubric_with(self.options_with(options))

    def options_with(self, *given: Mapping[str, Any]) -> Options:
        """The options of a call: what is given last counts, of the names that the method has."""
        known = [{name: value for name, value in each.items() if name in self.options} for each in given]
        return Options(**functools.reduce(operator.or_, known, self.defaults))

    def rubric_with(self, options: Options) -> Rubric:
        """The rubric as the options say."""
        return _make_rubric(
            self.rubric,
            self.reasons,
            options.scale,
            None if options.criteria is None else _criteria_of(options.criteria),
            _text("additional_instructions", options.additional_instructions),
            tuple(_example_text(example) for example in _list("examples", options.examples)),
        )


def check_options(given: Mapping[str, Any]) -> None:
    """Raises a SpecError that names what is no option, or no value of one."""
    known = [each.name for each in fields(Options)]
    for name in given:
        if name not in known:
            raise SpecError(f"options: {name} is none{alternatives(name, known)}")
    Judged("sentiment", tuple(known)).usual_rubric(given)


OPTIONS: Final = ("criteria", "additional_instructions", "examples", "min_score_val", "max_score_val", "output_space")
SHORT: Final = ("additional_instructions",)


def judges(
    rubric: str,
    *,
    options: tuple[str, ...] = OPTIONS,
    scale: tuple[int, int] = SCALE,
    lower_is_better: bool = False,
    reasons: bool = False,
) -> Callable[[_Method], Callable[..., Judgement]]:
    """Makes a method judge what it returns.

    Args:
        rubric: what the judge is asked.
        options: which of `Options` the method has, besides the temperature.
        scale: the lowest and the highest verdict, unless the options say otherwise.
        lower_is_better: whether high values are bad.
        reasons: whether the judge gives its reasons.
    """

    def decorate(method: _Method) -> Callable[..., Judgement]:
        return _judging(method, Judged(rubric, (*options, "temperature"), reasons, scale), lower_is_better)

    return decorate


def with_reasons(method: Callable[..., Judgement]) -> Callable[..., Judgement]:
    """The same method, whose judge gives its reasons before it decides."""
    inner: Any = method
    twin = _judging(inner.__wrapped__, replace(inner.judged, reasons=True), not inner.higher_is_better)
    suffix = "_with_cot_reasons"
    twin.__name__, twin.__qualname__ = f"{method.__name__}{suffix}", f"{method.__qualname__}{suffix}"
    twin.__doc__ = f"As `{method.__name__}`, with the judge's reasons."
    return twin


def judgement_of(score: Score) -> Judgement:
    """A judgement: the value, its reason, and what the judge said."""
    data = score.data or {}
    if score.value is None:
        return Judgement(None, _present(reason=score.reason, detail=score.explanation, **data))
    reason = score.explanation or f"the verdict is {score.label}"
    details = {"verdict": score.label, "evidence": data.get("evidence")}
    if "parts" in data:
        details["reasons"] = [
            _present(
                criteria=part["part"],
                supporting_evidence=part.get("explanation") or part.get("evidence"),
                score=part["value"],
            )
            for part in data["parts"]
        ]
    return Judgement(score.value, _present(reason=reason, **details))


def as_material(value: Any) -> Any:
    """A value as a judge reads it: text, or data; objects become data."""
    return value if value is None or isinstance(value, str) else to_json_like(value)


async def ask(provider: Any, judged: Judged, options: Options, material: Material) -> Score:
    """The score of some material.

    Raises:
        TaskError: a request failed.
        SpecError: an option is wrong.
    """
    values = {name: as_material(value) for name, value in material.items()}
    rubric = judged.rubric_with(options)
    if rubric.parts is not None:
        rubric = _with_parts(rubric, _parts_with(rubric.parts, options.groundedness_configs, PARTS in values))
    return await Questioner(rubric, provider.model_at(options.temperature)).judge(values)


def _judging(method: _Method, judged: Judged, lower_is_better: bool) -> Callable[..., Judgement]:
    own = [each for each in inspect.signature(method).parameters.values() if each.name != "options"]
    defaults = judged.defaults
    further = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name]) for name in judged.options
    ]
    signature = inspect.Signature([*own, *further], return_annotation=Judgement)

    @functools.wraps(method)
    def judge(*args: Any, **kwargs: Any) -> Judgement:
        bound = signature.bind(*args, **kwargs)
        own_options = {name: bound.arguments.pop(name) for name in judged.options if name in bound.arguments}
        provider = bound.arguments["self"]
        options = judged.options_with(provider.options or {}, own_options)
        bound.apply_defaults()
        _, *values = [value for name, value in bound.arguments.items() if name not in judged.options]
        if inspect.iscoroutinefunction(method):
            return judgement_of(run_coroutine(method(provider, *values, options=options)))
        material: Any = method(provider, *values)
        return judgement_of(run_coroutine(ask(provider, judged, options, material)))

    marked: Any = judge
    marked.__signature__, marked.judged, marked.range = signature, judged, (0.0, 1.0)
    marked.higher_is_better = not lower_is_better
    return judge


@functools.lru_cache(maxsize=512)
def _make_rubric(
    name: str, reasons: bool, scale: Scale, criteria: str | None, additional: str, examples: tuple[str, ...]
) -> Rubric:
    base = method_rubric(name)
    lines = [base.instructions if criteria is None else criteria]
    levels = scale.spec
    if criteria is None:
        by_value = sorted(base.scale.levels, key=lambda level: level.value)
        for label, level in ((scale.labels[0], by_value[0]), (scale.labels[-1], by_value[-1])):
            levels[label] |= {"anchor": level.anchor or level.label}
    else:
        lines.append("The higher the verdict, the more this is so.")
    if additional:
        lines.append(additional)
    if examples:
        lines += ["These are examples:", *(f"- {example}" for example in examples)]
    return Rubric(
        name=name,
        instructions="\n".join(lines),
        material=base.material,
        optional=base.optional,
        scale=Scale.of(levels),
        reasons=reasons,
        evidence=base.evidence if reasons else None,
        parts=base.parts,
    )


def _with_parts(rubric: Rubric, parts: Parts) -> Rubric:
    assert not isinstance(rubric.material, Template)
    seen = (*rubric.material, *parts.material)
    return replace(rubric, parts=parts, optional=[name for name in rubric.optional if name in seen])


def _parts_with(parts: Parts, configs: Any, is_given: bool) -> Parts:
    """How a text is divided: into what is given, or as TruLens' configuration says."""
    if is_given:
        return replace(parts, of=PARTS, split=ITEMS, instructions="", material=(PARTS,))
    if parts.name != "claim":
        return parts
    chosen = configs or GroundednessConfigs()
    chosen = chosen if isinstance(chosen, GroundednessConfigs) else GroundednessConfigs(**chosen)
    if not chosen.use_sent_tokenize:
        return parts
    if not chosen.filter_trivial_statements:
        return replace(parts, split="sentences", instructions="")
    return replace(parts, split=MODEL, instructions=_SENTENCES)


def _criteria_of(criteria: Any) -> str:
    if isinstance(criteria, str) and criteria in list(Criteria):
        return method_rubric(_BY_CRITERION.get(criteria, criteria)).instructions
    return _text("criteria", criteria)


def _text(name: str, value: Any) -> str:
    if value is not None and not isinstance(value, str):
        raise SpecError(f"{name} is {described(value)}; give a text")
    return (value or "").strip()


def _list(name: str, value: Any) -> Sequence[Any]:
    if value is None or isinstance(value, str):
        return [value] if value else []
    if not isinstance(value, list | tuple):
        raise SpecError(f"{name} is {described(value)}; give a list of texts, or of pairs of arguments and verdict")
    return value


def _example_text(example: Any) -> str:
    """An example in one line: a text as it is, arguments as JSON with their verdict."""
    if isinstance(example, str):
        return example
    match example:
        case [dict() as arguments, verdict] | {"feedback_args": dict() as arguments, "score": verdict}:
            return f"{json_text(arguments)}: {json_text(verdict)}"
        case _:
            raise SpecError(f"an example is {described(example)}; give a text, or a pair of arguments and verdict")


def _present(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "", [])}


_MOST: Final = 100
_BY_CRITERION: Final = {"relevance": "answer_relevance", "correctness": "truth", "helpfulness": "usefulness"}
_SENTENCES: Final = (
    "List the sentences of a text (output) word for word and in order. Leave out those that claim nothing about the"
    " world: greetings, questions, offers, and remarks of the writer about the answer itself."
)
