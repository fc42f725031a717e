"""What judges asked, from what is stored with their verdicts: readable years later, whatever the rubric's file says.

The stored content is what a rubric's digest covers, so the digest can be computed again from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from evaluand.core import identity
from evaluand.core.text.templates import Template
from evaluand.judges.judge_digest import digest_tree, questions_of
from evaluand.judges.prompt import Message, dividing_messages, judging_messages
from evaluand.judges.rubric import READING, Rubric, rubric_names

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
        then: of such a question, verdict → the name of the next one, or the value and the label of the score; None if
            an earlier version of evaluand stored it.

    Example:
        >>> from evaluand.judges.rubric import Rubric
        >>> rubric = Rubric.of("correctness")
        >>> stored = StoredRubric(rubric.title, rubric.content)
        >>> stored.digest == rubric.digest
        True
    """

    title: str
    content: Mapping[str, Any]
    question: str | None = None
    then: Mapping[str, Any] | None = None

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
        judge: [
            StoredRubric(each["title"], each["content"], each.get("question"), each.get("then")) for each in rubrics
        ]
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
    """Judge → how the stored rubrics differ from those by which it asked, of judges where they do.

    The id of an evaluation covers the digests of rubrics, and names and order of the questions of a tree. Titles are no
    part of a digest; they are compared with those among the parts of the judge.
    """
    spec, origin, stored = manifest["spec"], manifest["provenance"], stored_rubrics(manifest)
    scorers = spec["scorers"] if "scorers" in spec else {"judge": spec.get("judge") or {}}
    parts = origin.get("parts") or {}
    changed = {}
    for judge in dict.fromkeys((*scorers, *stored)):
        rubrics = stored.get(judge)
        if rubrics is None:
            change = _explain_missing(scorers[judge], origin)
        else:
            change = _explain_change(scorers.get(judge), rubrics, parts.get(judge) or {})
        if change:
            changed[judge] = f"the manifest was changed: judge {judge!r} {change}"
    return changed


def _explain_missing(spec: Mapping[str, Any], origin: Mapping[str, Any]) -> str:
    """Which rubrics of a judge should be stored; empty if there are none, or if an earlier version made this."""
    asked = sorted({str(each.get("rubric")) for each in questions_of(spec)})
    version = _VERSION.match(str(origin.get("evaluand")))
    is_stored = "rubrics" in origin or (version is not None and tuple(map(int, version.groups())) > _LAST_WITHOUT)
    return f"asked by the rubric {', '.join(asked)}, and none is stored" if asked and is_stored else ""


_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_LAST_WITHOUT: Final = (0, 2, 0)
"""The last version whose artifacts may have judges without their rubrics."""


def _explain_change(spec: Mapping[str, Any] | None, rubrics: Sequence[StoredRubric], parts: Mapping[str, Any]) -> str:
    """How the stored rubrics of a judge differ from those by which it asked; empty if they do not.

    Args:
        spec: the identity of the judge; None if it did not grade.
        parts: of the judge, which name its rubrics with their titles.
    """
    questions = questions_of(spec or {})
    if spec is not None and not questions:  # a class of the user
        return ""
    asked, stored = sorted({str(each.get("rubric")) for each in questions}), sorted({each.digest for each in rubrics})
    if asked != stored:
        return f"asked by the rubric {', '.join(asked) or 'none'}, and stored is {', '.join(stored) or 'none'}"
    for each in rubrics:
        known = [str(part) for part in parts.values() if str(part).endswith(f" {each.digest}")]
        if known and f"{each.title} {each.digest}" not in known:
            return f"asked by the rubric {known[0].removesuffix(each.digest).strip()!r}, and stored is {each.title!r}"
    if any(each.then is not None for each in rubrics) and _digest_tree(rubrics, questions) != (spec or {}).get("judge"):
        return "asked its questions by other names, or in another order, than those that are stored"
    return ""


def _digest_tree(rubrics: Sequence[StoredRubric], questions: Sequence[Mapping[str, Any]]) -> str:
    """What identifies a tree: the names of its questions, what each asks, and which follows."""
    if len(rubrics) != len(questions):
        return ""
    specs = zip(rubrics, questions, strict=True)
    return digest_tree((each.question, {**asked, "rubric": each.digest}, each.then or {}) for each, asked in specs)
