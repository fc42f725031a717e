"""Rubrics: the question to a judge, as data.

A rubric consists of instructions, the possible verdicts and their values. It is a YAML file, a mapping or an object,
and names no model: the same rubric works with any model. Its `digest` covers exactly what may change a verdict
(instructions, scale, examples, the form of the reply), so a measurement of a judge is valid as long as the digest is
the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Final

from evaluand.core import identity
from evaluand.core.errors import ParameterError, SpecError, alternatives, described
from evaluand.core.files.yaml import Document
from evaluand.core.text.templates import Template
from evaluand.judges.prompt import (
    Message,
    dividing_messages,
    dividing_schema,
    dividing_text,
    judging_messages,
    judging_schema,
    opening_messages,
)
from evaluand.judges.replies import EVIDENCE, REASONS, VERDICT
from evaluand.judges.rubric_fields import Parts, RubricExample, read_fields
from evaluand.judges.scale import Fault, Scale, unknown_keys

READING: Final = 3
"""Version of how material is written and replies are read, part of digests.

Raised when the same material would be sent, or the same reply be read, in another way.
"""

FIRST: Final = "first"
SECOND: Final = "second"


@dataclass(frozen=True, kw_only=True)
class Rubric:
    """A question to a judge, and the possible verdicts.

    Attributes:
        instructions: the question, and the criteria.
        material: the variables that the judge sees, in this order: `input`, `output`, `expected`, columns of the
            example, or others that the judge is given; `first` and `second` for a comparison of two responses. Or a
            template, such as `Question: {{ input }}`.
        optional: variables of the material that are shown only where a row has them.
        scale: the verdicts, see `Scale.of`.
        name: shown in tables.
        version: raised by its author when the rubric changes.
        summary: what the rubric measures, in one sentence.
        source: the publication of the method.
        higher_is_better: whether higher values are better; None if neither.
        reasons: whether the judge gives its reasons, before the verdict.
        evidence: the variable from which the judge quotes the decisive words, before the reasons.
        examples: cases with their verdicts.
        parts: how a text is divided into parts that are judged one by one.

    Raises:
        ParameterError: lists every fault with its place.

    Example:
        >>> polite = Rubric(
        ...     instructions="Is the reply of the support polite?",
        ...     material=["input", "output"],
        ...     scale={"polite": 1, "curt": 0.5, "rude": 0},
        ... )
        >>> polite.keys, polite.scale.range, len(polite.digest)
        (('reasons', 'verdict'), (0.0, 1.0), 32)
    """

    instructions: str = ""
    material: Sequence[str] | Template = ()
    scale: Scale = ""  # type: ignore[assignment] # whatever Scale.of takes; missing fields are reported with the others
    name: str = "rubric"
    version: str = "1"
    summary: str = ""
    source: str = ""
    higher_is_better: bool | None = None
    reasons: bool = True
    optional: Sequence[str] = ()
    evidence: str | None = None
    examples: Sequence[RubricExample] = ()
    parts: Parts | None = None

    def __post_init__(self) -> None:
        valid, faults = read_fields({each.name: getattr(self, each.name) for each in fields(self)})
        faults += _disagreements(**valid)
        if faults:
            raise ParameterError(faults)
        for name, value in valid.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, what: Any) -> Rubric:
        """A rubric from the name of one of evaluand's, the path of a YAML or JSON file, or a mapping.

        Raises:
            SpecError: there is no such rubric, or it is invalid; lists every fault with its line or place.

        Example:
            >>> Rubric.of("correctness").material
            ('input', 'output', 'expected')
        """
        if isinstance(what, Rubric):
            return what
        if isinstance(what, Mapping):
            return _from_mapping(what)
        if not isinstance(what, str | PathLike):
            raise SpecError(f"the rubric is {described(what)}; give its name, its file or the rubric itself")
        if is_path(what):
            return _from_file(Path(what))
        if what not in rubric_names():
            raise SpecError(
                f"no rubric is called {what!r}{alternatives(str(what), rubric_names())}; a file ends in .yaml"
            )
        return _own_rubric(str(what))

    @property
    def content(self) -> dict[str, Any]:
        """Everything that may change a verdict or its value, word for word, and nothing else."""
        return {
            "reading": READING,
            "opening": self.opening,
            "material": self.material.text if isinstance(self.material, Template) else [*self.material],
            "optional": sorted(self.optional),
            "schema": self.schema,
            "values": [[level.label, level.value, level.strength] for level in self.scale.levels],
            "parts": self.parts and [self.parts.spec, dividing_text(self.parts)],
        }

    @cached_property
    def digest(self) -> str:
        """32 hexadecimal digits: a hash of its content."""
        return identity.digest(self.content).hex()

    @property
    def spec(self) -> dict[str, Any]:
        """The rubric as data that `of` can read."""
        spec = {each.name: getattr(self, each.name) for each in fields(self)}
        material = self.material.text if isinstance(self.material, Template) else [*self.material]
        examples = [_given(asdict(example)) for example in self.examples]
        parts = self.parts and _given(asdict(self.parts))
        return _given(spec | {"material": material, "scale": self.scale.spec, "examples": examples, "parts": parts})

    @property
    def title(self) -> str:
        """Its name and version."""
        return f"{self.name} {self.version}"

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of a reply, in the order in which they are asked for."""
        asked = {EVIDENCE: self.evidence is not None, REASONS: self.reasons, VERDICT: True}
        return tuple(key for key, is_asked in asked.items() if is_asked)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that it reads of a row."""
        if self.parts is None:
            return _names_of(self.material)
        names = (*self.parts.material, self.parts.of, *_names_of(self.material))
        return tuple(dict.fromkeys(name for name in names if name != self.parts.name))

    @property
    def required(self) -> tuple[str, ...]:
        """The variables without which there is nothing to judge."""
        required = _required_of(self.material, self.optional)
        if self.parts is not None:
            required |= {self.parts.of, *_required_of(self.parts.material, self.optional)}
        return tuple(name for name in self.variables if name in required)

    @property
    def compares(self) -> bool:
        """Whether it compares two responses."""
        return FIRST in self.variables

    @cached_property
    def opening(self) -> list[Message]:
        """The messages that all rows have in common."""
        return opening_messages(
            instructions=self.instructions,
            scale=self.scale,
            keys=self.keys,
            evidence=self.evidence,
            material=self.material,
            examples=self.examples,
        )

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a reply with a verdict."""
        return judging_schema(self.scale, self.keys)

    def messages(self, values: Mapping[str, Any]) -> list[Message]:
        """The messages that ask for a verdict.

        Args:
            values: those of the variables of its material, none of them null.
        """
        return judging_messages(self.opening, self.material, values)

    def messages_to_divide(self, values: Mapping[str, Any]) -> list[Message]:
        """The messages that ask for the parts of a text."""
        assert self.parts is not None
        return dividing_messages(dividing_text(self.parts), self.parts.material, values)

    @property
    def schema_to_divide(self) -> dict[str, Any]:
        """The JSON Schema of a reply with parts."""
        return dividing_schema()


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are not empty."""
    return {name: value for name, value in fields.items() if value not in (None, "", (), [])}


def rubric_names() -> list[str]:
    """The names of the rubrics of evaluand.

    Example:
        >>> [name for name in rubric_names() if name.startswith("co")]
        ['coherence', 'conciseness', 'context_relevance', 'controversiality', 'correctness']
    """
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def is_path(what: Any) -> bool:
    """Whether what names a rubric is the path of a file, not the name of one of evaluand's."""
    return isinstance(what, PathLike) or (isinstance(what, str) and ("/" in what or what.endswith(_SUFFIXES)))


_FOLDER: Final = Path(__file__).with_name("rubrics")
_SUFFIXES: Final = (".yaml", ".yml", ".json")


@cache
def _own_rubric(name: str) -> Rubric:
    return _from_file(_FOLDER / f"{name}.yaml")


def _from_file(path: Path) -> Rubric:
    if not path.is_file():
        raise SpecError(f"{path}: no such file; name the file of a rubric, or one of {', '.join(rubric_names())}")
    document = Document(path)
    with document.at():
        if not isinstance(document.value, Mapping):
            raise SpecError("a rubric has instructions, material and scale")
        rubric = _from_mapping({"name": path.stem, **document.value})
    document.check()
    return rubric


def _from_mapping(written: Mapping[str, Any]) -> Rubric:
    known = [each.name for each in fields(Rubric)]
    faults = unknown_keys(written, known)
    try:
        rubric = Rubric(**{name: value for name, value in written.items() if name in known})
    except ParameterError as error:
        raise ParameterError([*faults, *error.faults]) from None
    if faults:
        raise ParameterError(faults)
    return rubric


def _names_of(material: Sequence[str] | Template) -> tuple[str, ...]:
    """The variables that the judge sees."""
    return tuple(sorted(material.variables) if isinstance(material, Template) else material)


def _required_of(material: Sequence[str] | Template, optional: Sequence[str]) -> frozenset[str]:
    """The variables that a row needs."""
    return (material.required if isinstance(material, Template) else frozenset(material)).difference(optional)


def _disagreements(
    *,
    material: Sequence[str] | Template = (),
    scale: Scale | None = None,
    optional: Sequence[str] = (),
    reasons: bool = True,
    evidence: str | None = None,
    examples: Sequence[RubricExample] = (),
    parts: Parts | None = None,
    **others: Any,
) -> Iterator[Fault]:
    """Faults in the combination of fields; only valid fields are passed."""
    required = _required_of(material, optional)
    material = _names_of(material)
    seen = (*material, *(parts.material if parts is not None else ()))
    for name in optional:
        if material and name not in seen:
            yield ("optional",), f"has {name!r}, which the judge does not see; it sees {', '.join(seen)}"
    if material and evidence is not None and evidence not in material:
        yield ("evidence",), f"is {evidence!r}, which the judge does not see; name one of {', '.join(material)}"
    if parts is not None:
        yield from _faults_of_parts(parts, material)
    if FIRST in material or SECOND in material:
        yield from _faults_of_comparison(material, scale, parts)
    elif scale is not None:
        for level in scale.levels:
            if level.strength is not None:
                yield (
                    ("scale", level.label, "strength"),
                    f"is of a comparison; the material has no {FIRST} and {SECOND}",
                )
    for number, example in enumerate(examples):
        place = ("examples", number)
        if scale is not None and scale.find(example.verdict) is None:
            labels = ", ".join(scale.labels)
            yield (
                (*place, "verdict"),
                f"is {described(example.verdict)}, which is not on the scale; give one of {labels}",
            )
        if material and (
            missing := [name for name in material if name in required and example.material.get(name) is None]
        ):
            yield (*place, "material"), f"has no {', '.join(missing)}"
        if material and (further := [name for name in example.material if name not in material]):
            yield (*place, "material"), f"has {', '.join(further)}, which the judge does not see"
        if reasons and not example.reasons:
            yield place, "has no reasons; give them, or set reasons: false for the rubric"


def _faults_of_parts(parts: Parts, material: Sequence[str]) -> Iterator[Fault]:
    if material and parts.name not in material:
        yield ("parts", "name"), f"is {parts.name!r}, which the judge does not see; add it to material"
    if parts.name == parts.of:
        yield ("parts", "name"), "is the variable that is divided; give the parts another name"


def _faults_of_comparison(material: Sequence[str], scale: Scale | None, parts: Parts | None) -> Iterator[Fault]:
    for name in (FIRST, SECOND):
        if name not in material:
            yield ("material",), f"has no {name}; a comparison needs {FIRST} and {SECOND}"
    if scale is not None and not (scale.range[0] >= 0 and scale.range[1] <= 1):
        yield ("scale",), "needs values from 0 to 1 for a comparison: the share of the win of the first response"
    if parts is not None:
        yield ("parts",), "are not for comparisons"
