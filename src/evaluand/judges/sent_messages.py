"""The messages that judges were sent about the rows of an evaluation, made again from what is stored.

They follow from the stored rubric, the example and the response. What of a text was judged by itself, and which
questions of a tree were asked, is in the score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from evaluand.core.errors import EvaluandError
from evaluand.evaluation.units import Sources
from evaluand.judges.judge_digest import questions_of
from evaluand.judges.prompt import Message
from evaluand.judges.stored_rubric import (
    NO_RUBRIC,
    NOT_STORED,
    StoredRubric,
    find_changed_rubrics,
    stored_rubrics,
)
from evaluand.judges.variables import Variables, columns_of

if TYPE_CHECKING:
    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.run.runner import Run

_VIEWS = ("view", "expected_view")


class Sent(NamedTuple):
    """The messages of one question.

    Attributes:
        question: which one, where a row was asked several.
        messages: those that were sent; a server that enforces no form of replies was sent a further instruction.
    """

    question: str | None
    messages: list[Message]


class SentMessages:
    """Reads what judges were sent.

    Args:
        run: the run that was graded; None if it is not in the store.
    """

    def __init__(self, evaluation: Evaluation, run: Run | None) -> None:
        self._specs = evaluation.manifest["spec"]["scorers"]
        self._rubrics = stored_rubrics(evaluation.manifest)
        self._changed = find_changed_rubrics(evaluation.manifest)
        self._sources = Sources(run)

    def of(self, judge: str, row: Mapping[str, Any]) -> list[Sent] | str:
        """What a judge was sent about a row, fast in ascending order; or why that is not known.

        Args:
            row: of the judge's table, with its key, status, reason and data.
        """
        spec = self._specs[judge]
        if judge in self._changed:
            return self._changed[judge]
        if judge not in self._rubrics:
            return NOT_STORED if questions_of(spec) else NO_RUBRIC
        rubrics = self._rubrics[judge]
        if any(view in spec for view in _VIEWS):
            return "the judge saw the row through a view"
        if "variables" not in spec:
            return "the class of this judge is not one of evaluand's, so it may have sent other messages"
        if not all(rubric.is_readable for rubric in rubrics):
            return "it was sent by another version of evaluand, which wrote the material of rows in another way"
        if row["_response_index_"] is None:  # there was no answer to judge
            return []
        found = self._sources.row_of(row["_index_"], row["replication"], row["_response_index_"])
        if found is None:
            return "the run or its dataset is not in this store"
        example, output, source = found
        seen = {**columns_of(example), **source, "input": example.input, "output": output, "expected": example.expected}
        if row["status"] == "failed" and rubrics[0].part_name is not None and rubrics[0].dividing_text is None:
            return f"the row failed, and of such rows it is not stored which {rubrics[0].part_name} was judged"
        try:
            names = dict.fromkeys(name for rubric in rubrics for name in rubric.variables)
            values = Variables([*names], spec["variables"]).read(seen)
            return [*_sent(rubrics, values, row)]
        except (EvaluandError, AttributeError, LookupError, TypeError) as error:  # of a store from elsewhere
            return f"it cannot be made again: {error}"


def _sent(rubrics: list[StoredRubric], values: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Sent]:
    """The questions of a row, in the order of its score."""
    data = row.get("data")
    if not isinstance(data, Mapping):
        if row["status"] == "failed":  # whether more was sent after the first message is not stored
            yield _first(rubrics[0], values)
        return
    if "path" in data:
        by_question = {rubric.question: rubric for rubric in rubrics}
        for step in data["path"]:
            yield Sent(step["node"], by_question[step["node"]].messages(values))
        return
    rubric = rubrics[0]
    if rubric.part_name is None or rubric.dividing_text is not None:
        yield _first(rubric, values)
    if rubric.part_name is None:
        return
    members = data.get("members", [data])
    texts = dict.fromkeys(each["part"] for member in members for each in member.get("parts", ()))
    for number, text in enumerate(texts, 1):
        yield Sent(f"{rubric.part_name} {number}", rubric.messages({**values, rubric.part_name: text}))


def _first(rubric: StoredRubric, values: Mapping[str, Any]) -> Sent:
    if rubric.dividing_text is not None:
        return Sent("division", rubric.messages_to_divide(values))
    return Sent(None, rubric.messages(values))
