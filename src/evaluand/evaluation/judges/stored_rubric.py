"""What judges asked, from what is stored with their verdicts: readable years later, whatever the rubric's file says.

The stored content is what a rubric's digest covers, so the digest can be computed again from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from evaluand.core import identity
from evaluand.core.text.templates import Template
from evaluand.evaluation.judges.judge_digest import questions_of
from evaluand.evaluation.judges.prompt import Message, dividing_messages, judging_messages
from evaluand.evaluation.judges.rubric import READING, Rubric, rubric_names

if TYPE_CHECKING:
    from evaluand.store.store import Manifest

NOT_STORED: Final = "an earlier version of evaluand made this, which did not store the text of rubrics"

NO_RUBRIC: Final = "this judge asks by no rubric, so its words are not stored"


@dataclass(frozen=True)
class StoredRubric:
    """A rubric as it was asked.

    Attributes:
        title: its name and version.
        content: everything that may change a verdict or its value, see `Rubric.content`.
        question: the name of the question that it asks, if it is one of several of a tree.

    Example:
        >>> from evaluand.evaluation.judges.rubric import Rubric
        >>> rubric = Rubric.of("correctness")
        >>> stored = StoredRubric(rubric.title, rubric.content)
        >>> stored.digest == rubric.digest
        True
    """

    title: str
    content: Mapping[str, Any]
    question: str | None = None

    @cached_property
    def digest(self) -> str:
        """32 hexadecimal digits: what the rubric's digest was."""
        return identity.digest(self.content).hex()

    @property
    def opening(self) -> list[Message]:
        """The messages that all rows have in common."""
        return [{"role": message["role"], "content": message["content"]} for message in self.content["opening"]]

    @property
    def dividing_text(self) -> str | None:
        """The system message of a model that divided a text; None if it was not asked to."""
        parts = self.content["parts"]
        return parts[1] if parts is not None and parts[0]["split"] == "model" else None

    @property
    def part_name(self) -> str | None:
        """What a part of the text is called; None if texts are judged whole."""
        return None if self.content["parts"] is None else str(self.content["parts"][0]["name"])

    @property
    def verdicts(self) -> list[str]:
        """The words of its scale."""
        return [str(label) for label, *_ in self.content["values"]]

    @property
    def is_readable(self) -> bool:
        """Whether this version of evaluand writes material as it was written then."""
        return bool(self.content["reading"] == READING)

    def messages(self, values: Mapping[str, Any]) -> list[Message]:
        """The messages that asked for a verdict.

        Args:
            values: those of the variables of its material.
        """
        return judging_messages(self.opening, self._material, values)

    def messages_to_divide(self, values: Mapping[str, Any]) -> list[Message]:
        """The messages that asked for the parts of a text."""
        parts, text = self.content["parts"]
        return dividing_messages(text, parts["material"], values)

    @cached_property
    def variables(self) -> list[str]:
        """What it reads of a row."""
        material, parts = self._material, self.content["parts"]
        names = sorted(material.variables) if isinstance(material, Template) else [*material]
        if parts is None:
            return names
        names = [*parts[0]["material"], parts[0]["of"], *names]
        return [*dict.fromkeys(name for name in names if name != parts[0]["name"])]

    @cached_property
    def _material(self) -> Sequence[str] | Template:
        material: str | Sequence[str] = self.content["material"]
        return Template(material) if isinstance(material, str) else material


def stored_rubrics(manifest: Manifest) -> dict[str, list[StoredRubric]]:
    """Judge → what it asked, in the manifest of an evaluation or of matches; without those of earlier versions."""
    entries = manifest["provenance"].get("rubrics") or {}
    return {
        judge: [StoredRubric(each["title"], each["content"], each.get("question")) for each in rubrics]
        for judge, rubrics in entries.items()
    }


def verdicts_of(manifest: Manifest, judge: str) -> list[str]:
    """The words that a judge of an evaluation may give to a response; empty if unknown.

    Known are those of judges that ask by one rubric about whole texts. The verdicts of trees are not stored.
    """
    spec = manifest["spec"]["scorers"].get(judge, {})
    asked = {str(each.get("rubric")) for each in questions_of(spec)}
    if len(asked) != 1 or spec.get("kind") not in _OF_ONE_SCALE:
        return []
    stored = stored_rubrics(manifest).get(judge) or _own_rubrics()
    rubric = next((each for each in stored if {each.digest} == asked), None)
    return rubric.verdicts if rubric is not None and rubric.part_name is None else []


_OF_ONE_SCALE: Final = ("judge", "jury")


def _own_rubrics() -> list[StoredRubric]:
    return [StoredRubric(rubric.title, rubric.content) for rubric in map(Rubric.of, rubric_names())]


def find_changed_rubrics(manifest: Manifest) -> dict[str, str]:
    """Judge → by which rubric it asked and which is stored, of judges that asked by other rubrics than are stored."""
    spec, changed = manifest["spec"], {}
    scorers = spec["scorers"] if "scorers" in spec else {"judge": spec.get("judge") or {}}
    for judge, rubrics in stored_rubrics(manifest).items():
        asked = sorted({str(each.get("rubric")) for each in questions_of(scorers.get(judge, {}))})
        stored = sorted({each.digest for each in rubrics})
        if (asked or judge not in scorers) and asked != stored:
            was, found = ", ".join(asked) or "none", ", ".join(stored) or "none"
            changed[judge] = (
                f"the manifest was changed: judge {judge!r} asked by the rubric {was}, and stored is {found}"
            )
    return changed
