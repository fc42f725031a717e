r"""Whether an answer is mathematically equal to the expected one, as with MATH and AIME.

Which part is the answer: the last `\boxed{…}`, or else what the last `answer is`, `Answer:` or `####` states, or else
all of a reply that is one line. Two numbers are compared as by `numeric_answer`; a word in `\text{…}` by its letters;
all else by SymPy: expressions (`x(x+2)+1`), roots, complex numbers (`i` is the imaginary unit, `e` Euler's number),
lists and sets in any order, tuples, intervals, matrices, equations and inequalities. A name before `=` may be left
out: `x = 7` is 7.

Decimals are exact: 0.33 is not a third. What is not read for sure abstains, and so does what is equal as far as
computed, without a proof.

The text is read by latex2sympy2 in a child process with limits of time and memory, and never by `sympify` or
`parse_expr`, which evaluate Python. The package math-verify, built on the same reader, is not used: it evaluates what
looks like plain arithmetic by `parse_expr`, and rounds numbers to six decimals.
"""

from __future__ import annotations

import json
import math
import re
import selectors
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from evaluand.core.errors import DataError, described
from evaluand.core.parameters import Within
from evaluand.core.system import call_after_fork
from evaluand.evaluation.final_answer import Region, Unreadable, final_answer
from evaluand.evaluation.scorer import ExpectationScorer, Score, is_number, unread
from evaluand.evaluation.written_numbers import Numbers, Quantity, are_equal, without_unit
from evaluand.models.extraction import COLUMN, Extraction


@dataclass(frozen=True, kw_only=True)
class MathEqual(ExpectationScorer):
    r"""1 where the answer is mathematically equal to the expected one, 0 where it is not; the answer is the `label`.

    Abstains where the answer or its equality is not known for sure, and where a question exceeds a limit.

    Attributes:
        timeout: seconds that a comparison may take.
        memory: MiB that it may use.

    Raises:
        SpecError: a limit is not positive, or the extra `math` is not installed.

    Example:
        >>> MathEqual().score(r"So it is $\boxed{\tfrac{3}{4}}$.", "0.75")[:2]
        (1.0, '\\tfrac{3}{4}')
    """

    kind = "math_equal"
    version = 1
    needs = ("latex2sympy2_extended", "math")
    ranges: ClassVar = {"value": (0.0, 1.0)}
    columns: ClassVar = {COLUMN: "json"}

    timeout: Annotated[float, Within(0, 1 << 20, above=True)] = 5.0
    memory: Annotated[int, Within(1, 1 << 20)] = 2048

    def close(self) -> None:
        _CHILD.close()

    def grade(self, output: Any, truth: _Answer, *others: Any) -> Score:
        try:
            answer, region = _read(output)
            right = self._equal(answer, truth)
        except Unreadable as error:
            return unread(str(error))
        extraction = Extraction(region.text, region.rule or "whole reply", region.candidates)
        explanation = None if right else f"{region.text[:_SHOWN]} ≠ {truth.text[:_SHOWN]}"
        return Score(float(right), region.text[:_SHOWN], None, explanation, columns={COLUMN: extraction.data})

    def read_expected(self, expected: Any) -> _Answer:
        try:
            truth, _ = _read(expected)
            if truth.quantity is None and truth.word is None:
                self._ask(truth.latex)
        except Unreadable as error:
            raise DataError(f"the expected value is {described(expected)}: {error}") from None
        return truth

    def _equal(self, answer: _Answer, truth: _Answer) -> bool:
        if answer.quantity and truth.quantity:
            is_equal = are_equal(answer.quantity, truth.quantity)
            if is_equal and answer.name and truth.name and answer.name != truth.name:
                raise Unreadable(f"the answer is the value of {answer.name}, and that of {truth.name} is expected")
            return is_equal
        if answer.word is None and truth.word is None:
            return self._ask(truth.latex, answer.latex)
        word, expected = answer.word or answer.text, truth.word or truth.text
        if word != expected and (sorted(word) == sorted(expected) or {*word.split()} & {*expected.split()}):
            raise Unreadable(f"{word!r} and {expected!r} have words or letters in common")
        if (answer.quantity or truth.quantity) and (_NUMERAL.match(word) or _NUMERAL.match(expected)):
            raise Unreadable(f"{word!r} and {expected!r}: a number in words")
        return word == expected

    def _ask(self, *texts: str) -> bool:
        """Whether texts are equal, the expected one first; of one text, whether it can be read."""
        reply = _CHILD.ask(texts, self.timeout, self.memory)
        if "unread" in reply:
            raise Unreadable(reply["unread"])
        return bool(reply["equal"])


class _Answer:
    """An answer in the forms in which it can be compared.

    Attributes:
        text: the answer without signs around it.
        name: what stands before its `=`, if that is a variable.
        quantity: it as a number.
        word: it as words, in lower case.
        latex: it as mathematics, without a unit.
    """

    def __init__(self, region: Region) -> None:
        if len(region.text.strip()) > _LONGEST:
            raise Unreadable(f"the answer is longer than {_LONGEST} characters")
        self.text = text = _bare(region.text)
        self.name = name[1] if (name := _NAME.match(text)) else None
        self.quantity = _quantity(region)
        self.word = None if self.quantity else _word(text)
        self.latex = self.quantity.latex if self.quantity else without_unit(_AND.sub(", ", text))
        if self.word is None and (prose := _PROSE.search(_COMMAND.sub(" ", self.latex))):
            raise Unreadable(f"{prose[0]!r} beside the answer")


def _read(value: Any) -> tuple[_Answer, Region]:
    if is_number(value):
        value = repr(value)
    if not isinstance(value, str):
        raise Unreadable(f"{described(value)} is neither a number nor text")
    region = final_answer(value)
    if region.rule is None and "\n" in value.strip():
        raise Unreadable("no answer is boxed or stated")
    if region.rule == "stated" and len(formulas := _FORMULA.findall(region.text)) == 1:
        region = region._replace(text=next(filter(None, formulas[0])))
    if not region.text.strip():
        raise Unreadable("the answer is empty")
    return _Answer(region), region


def _quantity(region: Region) -> Quantity | None:
    try:
        numbers = Numbers(region.text, region.rule)
        return numbers.read_only() if numbers and numbers.is_alone else None  # June 5 is no number
    except Unreadable:
        return None


def _word(text: str) -> str | None:
    """A text that is words, in lower case; the letters of an option or an order (`ACB`) as they are."""
    word = " ".join(_TEXT.sub(r" \1 ", text).strip("() [].,").split())
    if _OPTION.fullmatch(word) and ("(" in text or len(word) > 1 or _TEXT.search(text)):
        return word
    is_word = _WORDS.fullmatch(word) and (_TEXT.search(text) or len(word) > _SHORT or _SHORT_WORDS.fullmatch(word))
    return word.casefold() if is_word else None


def _bare(text: str) -> str:
    while (bare := _AROUND.sub("", text.strip())) != text:
        text = bare
    return text


_SHOWN: Final = 200
_LONGEST: Final = 1000
_SHORT: Final = 3  # letters that may be variables: abc
_SHORT_WORDS: Final = re.compile(r"no|on|yes|odd|all|any|not|one|two|six|ten|max|min|sum", re.IGNORECASE)
_NUMERAL: Final = re.compile(r"none|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half")
_NAME: Final = re.compile(r"\s*([^\W\d_](?:_\w+|_\{\w+\})?)\s*=")
_AROUND: Final = re.compile(r"^(?:\$+|\\[(\[]|\*\*)|(?:\$+|\\[)\]]|\*\*|(?<![\\.])\.)$")
_TEXT: Final = re.compile(r"\\(?:text[a-z]*|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
_WORDS: Final = re.compile(r"[^\W\d_]+(?:[ '-]+\(?[^\W\d_]+\)?)*")
_OPTION: Final = re.compile(r"[A-Z]+")
_AND: Final = re.compile(r"\\text\s*\{\s*(?:,\s*)?(?:and|or)\s*\}|,?\s(?:and|or)\s")
_COMMAND: Final = re.compile(r"\\[a-zA-Z]+(?:\{[a-z]*matrix\})?")
_PROSE: Final = re.compile(r"[^\W\d_]{4,}")
_FORMULA: Final = re.compile(r"\$\$?([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]")


class _Child:
    """The process that compares; started when it is needed, and again after it was ended."""

    def __init__(self) -> None:
        self._limits = (0.0, 0)
        self.forget()

    def forget(self) -> None:
        """After a fork, in the process that did not start it."""
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, texts: Sequence[str], timeout: float, memory: int) -> dict[str, Any]:
        with self._lock:
            if self._limits != (timeout, memory) or (self._process and self._process.poll() is not None):
                self._end()
            process = self._process or self._start(timeout, memory)
            try:
                assert process.stdin is not None
                process.stdin.write(json.dumps(texts).encode() + b"\n")
                process.stdin.flush()
                line = _line(process, timeout)
            except BrokenPipeError:
                line = b""
            if not line:
                ended = process.poll() is not None
                self._end()
                raise Unreadable("the comparison ended early" if ended else f"the comparison took over {timeout:g} s")
            reply: dict[str, Any] = json.loads(line)
            return reply

    def close(self) -> None:
        with self._lock:
            self._end()

    def _start(self, timeout: float, memory: int) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, *_ALONE, str(_WORKER), str(memory << 20), str(math.ceil(timeout) + 1)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PYTHONHASHSEED": "0"},
        )
        self._process, self._limits = process, (timeout, memory)
        if not _line(process, _LONGEST_START):
            self._end()
            raise Unreadable("the process that compares did not start")
        return process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        with suppress(BrokenPipeError):
            process.communicate()


def _line(process: subprocess.Popen[bytes], timeout: float) -> bytes:
    """A line of the process; empty if there is none in time."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        return process.stdout.readline() if selector.select(timeout) else b""


_WORKER: Final = Path(__file__).with_name("math_worker.py")
_LONGEST_START: Final = 60.0
_ALONE: Final = ("-s", "-P", "-B")  # as -I, but the seed of hashes is read
_CHILD: Final = _Child()
call_after_fork(_CHILD.forget)
