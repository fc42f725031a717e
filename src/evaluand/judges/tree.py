"""`judge_tree`: questions that are asked one after the other, each chosen by the verdict before.

A tree divides one broad question into narrow ones that are easier to answer and to check: whether the reply refuses; if
not, whether it answers; if so, how well. Each row is asked only the questions on its path.

Source: Zhong et al. 2022, Towards a Unified Multi-Dimensional Evaluator, arXiv:2210.07197 (evaluation as yes-or-no
questions); the paths through a tree are those of any decision tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

from evaluand.core.errors import ParameterError, SpecError, described, nearest
from evaluand.evaluation.scorer import Score, is_number
from evaluand.judges.judge_digest import digest_tree
from evaluand.judges.model_judge import (
    ResponseJudge,
    collect_faults,
    read_model,
    read_paths,
    read_rubric,
    variables_of,
)
from evaluand.judges.outcomes import abstained, described_score
from evaluand.judges.questioner import Questioner
from evaluand.judges.rubric import Rubric
from evaluand.judges.scale import Fault, unknown_keys
from evaluand.models.chat_model import ChatModel


class Leaf(NamedTuple):
    """Where a path ends.

    Attributes:
        value: of the score.
        label: of the score; None for the last verdict.
    """

    value: float
    label: str | None = None


class Node(NamedTuple):
    """One question.

    Attributes:
        questioner: rubric and model.
        then: label of a verdict → the name of the next node, or a leaf.
    """

    questioner: Questioner
    then: Mapping[str, str | Leaf]

    @property
    def following(self) -> dict[str, Any]:
        """`then` as data."""
        return {label: next if isinstance(next, str) else [next.value, next.label] for label, next in self.then.items()}


@dataclass(frozen=True, kw_only=True, repr=False)
class JudgeTree(ResponseJudge):
    """Verdicts on a response along a path of questions.

    The path, with every reply, is in `data`. Abstains if the reply to a question on the path cannot be read.

    Attributes:
        nodes: name → question, beginning with the first one. A question has a `rubric`, a `model` if it is another than
            the tree's, and `then`: verdict → the name of the next question, the value of the score, or a mapping of
            `value` and `label`. Without `then`, the path ends there with the value of the verdict.
        model: the model of questions that name none.
        higher_is_better: whether higher values are better; None if neither.
        variables: paths of variables of the rubrics that are no columns, such as `{context: output.passages}`.

    Raises:
        ParameterError: lists every fault of rubrics, models and parameters.

    Example:
        >>> from evaluand.models import ChatModel
        >>> refuses = {
        ...     "instructions": "Does the reply (output) refuse what is asked (input)?",
        ...     "material": ["input", "output"],
        ...     "scale": {"yes": 1, "no": 0},
        ... }
        >>> tree = JudgeTree(
        ...     nodes={
        ...         "refuses": {"rubric": refuses, "then": {"yes": 0, "no": "right"}},
        ...         "right": {"rubric": "correctness"},
        ...     },
        ...     model=ChatModel("http://127.0.0.1:8080/v1", "small"),
        ... )
        >>> tree.ranges, tree.reader.names
        ({'value': (0.0, 1.0)}, ('input', 'output', 'expected'))
    """

    kind = "judge_tree"
    version = 1

    nodes: Mapping[str, Any]
    model: Any = None
    higher_is_better: bool | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        faults = list[Fault]()
        if not self.nodes or not isinstance(self.nodes, Mapping):
            raise ParameterError([(("nodes",), f"are {described(self.nodes)}; give name: question")])
        model = None if self.model is None else collect_faults(faults, ("model",), lambda: read_model(self.model))
        is_model_wrong = self.model is not None and model is None
        nodes = dict[str, Node]()
        for name, entry in self.nodes.items():
            node = collect_faults(faults, ("nodes", name), partial(_read_node, entry, model, is_model_wrong))
            if node is not None:
                nodes[name] = node
        faults += _faults_of_paths(nodes, list(self.nodes))
        names = variables_of([node.questioner for node in nodes.values()])
        paths = None if faults else collect_faults(faults, ("variables",), lambda: read_paths(self.variables, names))
        if self.higher_is_better not in (True, False, None):
            faults.append(
                (("higher_is_better",), f"is {described(self.higher_is_better)}; give true, false or nothing")
            )
        if faults:
            raise ParameterError(faults)
        for field_name, value in {"nodes": nodes, "model": model, "variables": paths}.items():
            object.__setattr__(self, field_name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.nodes)})"

    @cached_property
    def questioners(self) -> Sequence[Questioner]:
        return [node.questioner for node in self.nodes.values()]

    @property
    def rubrics(self) -> Sequence[Mapping[str, Any]]:
        """The rubrics of its questions, in their order."""
        asked = [(name, node.questioner.rubric, node.following) for name, node in self.nodes.items()]
        return [
            {"question": name, "title": rubric.title, "content": rubric.content, "then": then}
            for name, rubric, then in asked
        ]

    @property
    def questions_digest(self) -> str:
        return digest_tree((name, node.questioner.spec, node.following) for name, node in self.nodes.items())

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:  # type: ignore[override]
        values = [leaf.value for node in self.nodes.values() for leaf in node.then.values() if isinstance(leaf, Leaf)]
        return {"value": (min(values), max(values))}

    async def decide(self, values: Mapping[str, Any]) -> Score:
        path = list[dict[str, Any]]()
        explanations = list[str]()
        next_one: str | Leaf = next(iter(self.nodes))
        while isinstance(next_one, str):
            name, node = next_one, self.nodes[next_one]
            score = await node.questioner.judge(values)
            path.append({"node": name, **described_score(score)})
            explanations.append(f"{name}: {score.label or score.reason}. {score.explanation or ''}".strip())
            if score.value is None or score.label is None:
                return abstained(f"{name}: {score.reason}", "\n".join(explanations), {"path": path})
            next_one = node.then[score.label]
        return Score(next_one.value, next_one.label or score.label, {"path": path}, "\n".join(explanations))


_KEYS: Final = ("rubric", "model", "then")


def _read_node(entry: Any, model: ChatModel | None, is_model_wrong: bool) -> Node:
    """A question of a tree.

    Args:
        model: of the tree; None if it has none.
        is_model_wrong: whether a fault of that model is reported already.
    """
    if not isinstance(entry, Mapping):
        raise ParameterError([((), f"is {described(entry)}; give rubric and then")])
    faults = unknown_keys(entry, _KEYS)
    rubric = collect_faults(faults, ("rubric",), lambda: _read_rubric(entry))
    own = collect_faults(faults, ("model",), lambda: read_model(entry["model"])) if "model" in entry else model
    then = None if rubric is None else collect_faults(faults, ("then",), lambda: dict(_read_then(entry, rubric)))
    if own is None and "model" not in entry and not is_model_wrong:
        faults.append((("model",), "is missing; give the tree a model, or this question"))
    if faults or rubric is None or own is None or then is None:
        raise ParameterError(faults)
    return Node(Questioner(rubric, own), then)


def _read_rubric(entry: Mapping[str, Any]) -> Rubric:
    if "rubric" not in entry:
        raise SpecError("is missing; name a rubric, or write it here")
    rubric = read_rubric(entry["rubric"])
    if rubric.parts is not None:
        raise SpecError(f"{rubric.name} has a verdict for each part and none for the whole, so no path follows from it")
    return rubric


def _read_then(entry: Mapping[str, Any], rubric: Rubric) -> Iterator[tuple[str, str | Leaf]]:
    """The next question, or the end of the path, for each label of the scale."""
    then = entry.get("then")
    if then is None:
        yield from ((level.label, Leaf(level.value)) for level in rubric.scale.levels)
        return
    if not isinstance(then, Mapping):
        raise ParameterError([((), f"is {described(then)}; give verdict: next question or value")])
    labels, faults = rubric.scale.labels, list[Fault]()
    by_label: dict[str, Any] = {}
    for written, follows in then.items():
        level = rubric.scale.find(written)
        if level is None:
            faults.append(
                ((written,), f"is not on the scale{nearest(str(written), labels)}; it has {', '.join(labels)}")
            )
        else:
            by_label[level.label] = follows
    faults += [((), f"does not say what follows {label!r}") for label in labels if label not in by_label]
    if faults:
        raise ParameterError(faults)
    for label, follows in by_label.items():
        yield label, _read_follower(label, follows)


def _read_follower(label: str, follows: Any) -> str | Leaf:
    if isinstance(follows, str):
        return follows
    if is_number(follows):
        return Leaf(float(follows))
    if isinstance(follows, Mapping) and {*follows} <= {"value", "label"} and is_number(follows.get("value")):
        return Leaf(float(follows["value"]), None if follows.get("label") is None else str(follows["label"]))
    raise ParameterError([((label,), f"is {described(follows)}; give the name of a question, or a value")])


def _faults_of_paths(nodes: Mapping[str, Node], names: Sequence[str]) -> Iterator[Fault]:
    """Faults of paths: questions that do not exist, circles, and questions that are never asked.

    Args:
        nodes: the valid ones.
        names: of all of them, the first one first.
    """
    followers = {name: [each for each in node.then.values() if isinstance(each, str)] for name, node in nodes.items()}
    for name, node in nodes.items():
        for label, follows in node.then.items():
            if isinstance(follows, str) and follows not in names:
                hint = nearest(follows, names)
                yield ("nodes", name, "then", label), f"there is no question {follows!r}{hint}; give one, or a value"
    for name in names:
        if name in _reachable(followers, followers.get(name, ())):
            yield ("nodes", name), "is asked again on its own path; a path must end"
    if len(nodes) == len(names):
        reached = {names[0], *_reachable(followers, [names[0]])}
        for name in names:
            if name not in reached:
                yield ("nodes", name), "is never asked; name it under then of another question"


def _reachable(followers: Mapping[str, Sequence[str]], starts: Sequence[str]) -> set[str]:
    """The questions that can be reached from some questions, including these."""
    found, left = set[str](), list(starts)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += followers.get(name, ())
    return found
