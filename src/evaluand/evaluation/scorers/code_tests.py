"""Whether a program that a model has written passes its tests, as those of HumanEval and MBPP."""

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final

from evaluand.core.errors import DataError, described
from evaluand.core.fingerprint import Identity
from evaluand.core.parameters import Within
from evaluand.engine.sandbox.limits import Limits
from evaluand.engine.sandbox.running import IMAGE, Ended, require_sandbox, run_program
from evaluand.evaluation.scorer import Score, TextScorer, unread, wrong_parameter
from evaluand.evaluation.written_code import names_tested, read_program
from evaluand.models.extraction import COLUMN, Extraction

PARTS: Final = ("tests", "entry_point", "prompt", "setup")
"""What an expected value that is an object may have."""

_LEAST_MEMORY: Final = 64  # MiB, in which Python just starts


@dataclass(frozen=True, kw_only=True)
class CodeTests(TextScorer):
    """1 where the Python program in the output passes the expected tests, 0 where not; `label` tells how it ended.

    The program is what `evaluand.evaluation.written_code` reads in the output: the blocks of Python that define what is
    tested and what these need, without usage examples and outputs; the column `extraction` names them. It runs in a
    sandbox, without network, secrets or your files, which `evaluand.engine.sandbox` describes: bubblewrap, or else a
    container of docker or podman. It passes if the tests after it are executed to their end: leaving early, or printing
    that all is well, is no pass. A program that is made to deceive can still pass, as it shares a process with its
    tests: by returning an object that equals everything, by replacing a function that they call, or by looking for the
    proof.

    The expected value is a text, the tests; a list of texts, such as the assertions of MBPP; or an object with

    - `tests`: either of these;
    - `entry_point`: the name of a function that is given to the function `check` of the tests, as in HumanEval;
    - `prompt`: what the output continues, as in HumanEval. An output that defines the function itself comes after it;
    - `setup`: a text or a list of texts that are executed between the program and the tests.

    Labels: `passed`; `failed` (an error, or it left before the end of the tests); `killed` (a signal ended it, such as
    SIGSEGV); and the limits `timeout`, `memory`, `output`. `explanation` is the last line of the error, with its place.
    Abstains where nothing is expected and where the output is not text.

    Attributes:
        timeout: seconds after which a program is ended.
        memory: MiB that each of its processes may use.
        allow_unsandboxed: run the programs without isolation where there is no sandbox: with your rights, apart from
            limits. Only for a machine, such as a container, on which nothing matters.
        image: of the container, with Python 3.11 or later as `python3`. It must be on the machine: it is never fetched.

    Raises:
        SpecError: a limit is not above 0, or the image cannot be one.

    Example:
        >>> scorer = CodeTests(timeout=5)
        >>> scorer.score("def add(a, b): return a + b", ["assert add(1, 2) == 3"]).label  # doctest: +SKIP
        'passed'
    """

    kind = "code_tests"
    version = 2
    ranges: ClassVar = {"value": (0.0, 1.0)}
    columns: ClassVar = {COLUMN: "json"}

    timeout: Annotated[float, Within(0, 3600, above=True)] = 10.0
    memory: Annotated[int, Within(_LEAST_MEMORY, 1 << 20)] = 1024
    allow_unsandboxed: bool = False
    image: str = IMAGE

    def __post_init__(self) -> None:
        super().__post_init__()
        image: Any = self.image
        if not isinstance(image, str) or not _IMAGE.fullmatch(image):
            raise wrong_parameter(self, "image", f"give the name of an image, such as {IMAGE}")

    def identify(self) -> Identity:
        """The image is part of it where it is not the usual one."""
        identity = super().identify()
        parameters = {k: v for k, v in identity.spec["parameters"].items() if (k, v) != ("image", IMAGE)}
        return replace(identity, spec={**identity.spec, "parameters": parameters})

    def prepare(self) -> None:
        """Raises a SpecError if there is no sandbox here."""
        require_sandbox(self.image, allow_unsandboxed=self.allow_unsandboxed)

    def grade(self, output: Any, truth: "_Tests", *others: Any) -> Score:
        """Runs the program and its tests."""
        if not isinstance(output, str):
            return unread(f"the output is {described(output)}, not text")
        limits = Limits(timeout=self.timeout, memory=self.memory)
        read = read_program(output, truth.wanted, truth.prompt)
        parts = truth.after(read.text or "")
        return _graded(run_program(parts, limits, image=self.image, allow_unsandboxed=self.allow_unsandboxed), read)

    def read_expected(self, expected: Any) -> "_Tests":
        return _Tests.of(expected)


_IMAGE: Final = re.compile(r"[a-zA-Z0-9][\w./:@-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Tests:
    """What surrounds an answer."""

    tests: str
    entry_point: str | None = None
    prompt: str = ""
    setup: str = ""

    @classmethod
    def of(cls, expected: Any) -> "_Tests":
        """Reads an expected value; a DataError tells what is wrong with it."""
        fields = dict(expected) if isinstance(expected, Mapping) else {"tests": expected}
        unknown = [name for name in fields if name not in PARTS]
        if unknown or "tests" not in fields:
            has = ", ".join(map(repr, fields)) or "nothing"
            raise DataError(
                f"the expected value has {has}; code_tests reads tests, and if given {', '.join(PARTS[1:])}"
            )
        texts = {name: _text(name, value) for name, value in fields.items() if value is not None}
        return cls(**texts)._checked()

    def _checked(self) -> "_Tests":
        name = self.entry_point
        if not self.tests.strip():
            raise DataError("the expected value has no tests, which every program would pass")
        if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
            raise DataError(f"entry_point is {described(name)}, which is not the name of a function")
        if name is None and _CHECK.search(self.tests) and not _CALL.search(self.tests):
            raise DataError("the tests define check(…), and nothing calls it; add entry_point to the expected value")
        return self

    @property
    def wanted(self) -> set[str]:
        """The names that an answer should define."""
        return {self._name} if self._name else names_tested(f"{self.setup}\n{self.tests}")

    @property
    def _name(self) -> str | None:
        return self.entry_point or next(reversed(_DEFINED.findall(self.prompt)), None)

    def after(self, answer: str) -> list[tuple[str, str]]:
        """The parts of the program, in the order in which they are executed."""
        call = f"\ncheck({self.entry_point})\n" if self.entry_point else ""
        parts = [*self._completed(answer), ("setup", self.setup), ("tests", self.tests + call)]
        return [(name, text) for name, text in parts if text or name != "setup"]

    def _completed(self, answer: str) -> list[tuple[str, str]]:
        if not self.prompt:
            return [("answer", answer)]
        name = self._name
        if name is None or not re.search(rf"^(?:async[ \t]+)?(?:def|class)[ \t]+{name}\b", answer, re.MULTILINE):
            return [("answer", self.prompt + answer)]
        body = " pass" if self.prompt.rstrip().endswith(":") else ""
        return [("prompt", self.prompt.rstrip() + body), ("answer", answer)]


_CHECK: Final = re.compile(r"^def[ \t]+check\b", re.MULTILINE)
_CALL: Final = re.compile(r"^check\b", re.MULTILINE)
_DEFINED: Final = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)


def _text(name: str, value: Any) -> str:
    lines = [value] if isinstance(value, str) else value
    is_list = isinstance(lines, list | tuple)
    if not is_list or not all(isinstance(line, str) for line in lines):
        raise DataError(
            f"{name} of the expected value is {described(value)}; code_tests reads a text or a list of texts"
        )
    return "\n".join(lines)


def _graded(ended: Ended, read: Extraction) -> Score:
    columns = {COLUMN: read.data}
    if ended.how == "finished":
        return Score(1.0, "passed", columns=columns)
    label = "failed" if ended.how in ("raised", "exited") else ended.how
    place = f" ({ended.where})" if ended.where else ""
    return Score(0.0, label, explanation=f"{ended.error}{place}", columns=columns)
