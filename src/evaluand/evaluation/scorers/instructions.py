"""Whether a text follows instructions that a program can check, as those of IFEval.

IFEval is J. Zhou et al., "Instruction-Following Evaluation for Large Language Models", 2023, arXiv:2311.07911. The
checks are written from what its instructions mean, and agree with its published program where that decides otherwise
than a reader might, since figures are compared. Texts in parameters are texts here, never patterns.
"""

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar, Final

from evaluand.core.errors import DataError, described, nearest
from evaluand.core.text.language import language_of, require_language
from evaluand.core.text.sentences import ABBREVIATIONS, BEGINNINGS
from evaluand.evaluation.scorer import Score, TextScorer

Instruction = tuple[str, Mapping[str, Any]]
"""An instruction: its name, and its parameters."""

_COUNTS: Final = ("correct", "partial", "n_expected", "n_predicted")


@dataclass(frozen=True, kw_only=True)
class Instructions(TextScorer):
    """1 where the output follows every one of the expected instructions, 0 where not: the strict accuracy of IFEval.

    The metric `recall` of this scorer is the share of the single instructions that are followed; with `label`, that of
    one kind. The explanation names those that are not.

    The expected value is an object with `names`, a list such as `["punctuation:no_comma"]`, and `parameters`, a list of
    an object (or null) for each, such as `[{}]`; parameters that are null are left out. The 25 instructions of IFEval
    are known. The output is graded as it is; a blank one follows nothing.

    - Words are runs of letters, digits and `_`. Those in capitals are also joined by `-`, `.` or `/`.
    - A sentence ends with `.`, `!` or `?` before white space, apart from abbreviations (`Dr.`), initials
      (`J. S. Bach`), and `...` before a small letter.
    - `change_case:english_capital` and `change_case:english_lowercase` look at the case alone, unless
      `detect_language` is set.

    Abstains where nothing is expected, where the output is not text, and where `language:response_language` is asked
    for without `detect_language`.

    Attributes:
        detect_language: identify the language of answers. A text whose language cannot be identified is in none. Needs
            the extra `language`: `pip install 'evaluand[language]'`.

    Raises:
        SpecError: py3langid is not installed, and languages are to be detected.

    Example:
        >>> asked = {"names": ["punctuation:no_comma", "startend:quotation"], "parameters": [{}, {}]}
        >>> score = Instructions().score("No comma here.", asked)
        >>> score.value, score.explanation
        (0.0, 'not followed: startend:quotation')
    """

    kind = "instructions"
    version = 1
    cheap = True
    ranges: ClassVar = {"value": (0.0, 1.0)}
    columns: ClassVar = dict.fromkeys(_COUNTS, "int64") | {"by_tag": "json"}  # by the names that `recall` reads

    detect_language: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.detect_language:
            require_language(self.kind)

    def grade(self, output: Any, truth: list[Instruction], *others: Any) -> Score:
        """Checks each instruction."""
        if not isinstance(output, str):
            return self.abstained(f"the output is {described(output)}, not text", truth)
        if not self.detect_language and any(name == _LANGUAGE for name, _ in truth):
            return self.abstained(f"{_LANGUAGE} needs detect_language: true", truth)
        followed = [bool(output.strip()) and self._follows(output, *given) for given in truth]
        broken = [name for (name, _), is_followed in zip(truth, followed, strict=True) if not is_followed]
        why = f"not followed: {', '.join(broken)}" if broken else None
        return Score(float(not broken), explanation=why, columns=_counted(truth, followed))

    def read_expected(self, expected: Any) -> list[Instruction]:
        return _read(expected)

    def columns_of(self, truth: list[Instruction]) -> Mapping[str, Any]:
        return {"n_expected": len(truth)}

    def _follows(self, reply: str, name: str, parameters: Mapping[str, Any]) -> bool:
        in_english = name in _IN_ENGLISH and self.detect_language
        return bool(_CHECKS[name](reply, **parameters)) and (not in_english or _is_in(reply.lower(), "en"))


_LANGUAGE: Final = "language:response_language"
_IN_ENGLISH: Final = ("change_case:english_capital", "change_case:english_lowercase")


def _read(expected: Any) -> list[Instruction]:
    """The instructions of an expected value; a DataError tells what is wrong with it."""
    if not isinstance(expected, Mapping) or set(expected) != {"names", "parameters"}:
        has = ", ".join(map(repr, expected)) if isinstance(expected, Mapping) else described(expected)
        raise DataError(f"the expected value has {has or 'nothing'}; instructions reads names and parameters")
    names, parameters = expected["names"], expected["parameters"]
    for part, value in expected.items():
        if not isinstance(value, list | tuple) or not value:
            raise DataError(f"{part} of the expected value is {described(value)}; give a list with what is asked for")
    if len(names) != len(parameters):
        raise DataError(f"the expected value has {len(names)} names and {len(parameters)} parameters")
    return [_read_instruction(name, values) for name, values in zip(names, parameters, strict=True)]


def _read_instruction(name: Any, parameters: Any) -> Instruction:
    if not isinstance(name, str) or name not in _CHECKS:
        hint = nearest(name, _CHECKS) if isinstance(name, str) else ""
        raise DataError(f"{described(name)} is no known instruction{hint}")
    if not isinstance(parameters, Mapping | None):
        raise DataError(f"the parameters of {name} are {described(parameters)}, not an object")
    given = {key: value for key, value in (parameters or {}).items() if value is not None}
    needed = _parameters_of(name)
    if set(given) != set(needed):
        asked, has = (", ".join(map(str, keys)) or "none" for keys in (needed, given))
        raise DataError(f"{name} has the parameters {asked}, and is given {has}")
    for key, value in given.items():
        if key.endswith("relation") and value not in _RELATIONS:
            raise DataError(f"{key} of {name} is {described(value)}; give {' or '.join(map(repr, _RELATIONS))}")
        if not _fits(value, needed[key].annotation):
            raise DataError(f"{key} of {name} is {described(value)}; give {_MEANT[needed[key].annotation]}")
    return name, given


@cache
def _parameters_of(name: str) -> Mapping[str, inspect.Parameter]:
    """What a kind of instruction needs besides the reply."""
    return dict([*inspect.signature(_CHECKS[name]).parameters.items()][1:])


def _fits(value: Any, kind: Any) -> bool:
    if kind == list[str]:
        return isinstance(value, list | tuple) and all(_fits(one, str) for one in value)
    return value != "" and isinstance(value, kind) and not isinstance(value, bool)


_MEANT: Final[Mapping[Any, str]] = {int: "a whole number", str: "a text", list[str]: "a list of texts"}


def _counted(instructions: Sequence[Instruction], followed: Sequence[bool]) -> dict[str, Any]:
    by_tag: dict[str, dict[str, int]] = {}
    for (name, _), is_followed in zip(instructions, followed, strict=True):
        counts = by_tag.setdefault(name, dict.fromkeys(("expected", "found", "predicted", "right"), 0))
        for key, number in zip(counts, (1, is_followed, 1, is_followed), strict=True):
            counts[key] += number
    n = len(instructions)
    return dict(zip(_COUNTS, (sum(followed), 0, n, n), strict=True)) | {"by_tag": by_tag}


# What the instructions ask for. The parameters are named as in the published set.


def _no_comma(reply: str) -> bool:
    return "," not in reply


def _keywords(reply: str, keywords: list[str]) -> bool:
    return all(_count(word, reply) for word in keywords)


def _frequency(reply: str, keyword: str, frequency: int, relation: str) -> bool:
    return _compare(_count(keyword, reply), relation, frequency)


def _forbidden(reply: str, forbidden_words: list[str]) -> bool:
    return not any(re.search(rf"\b{re.escape(word)}\b", reply, re.IGNORECASE) for word in forbidden_words)


def _letter_frequency(reply: str, letter: str, let_frequency: int, let_relation: str) -> bool:
    return _compare(reply.lower().count(letter.lower()), let_relation, let_frequency)


def _is_in(reply: str, language: str) -> bool:
    found = language_of(reply)
    return found is not None and found.code == language


def _sentences(reply: str, num_sentences: int, relation: str) -> bool:
    return _compare(count_sentences(reply), relation, num_sentences)


def _words(reply: str, num_words: int, relation: str) -> bool:
    return _compare(len(re.findall(r"\w+", reply)), relation, num_words)


def _paragraphs(reply: str, num_paragraphs: int) -> bool:
    return len(_divided(reply, "***")) == num_paragraphs


def _nth_paragraph(reply: str, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    """Paragraphs are what blank lines divide; a further blank line counts as a place, but as no paragraph."""
    places = [place.strip() for place in reply.split("\n\n")]
    if sum(map(bool, places)) != num_paragraphs or not 0 < nth_paragraph <= num_paragraphs:
        return False
    begins = re.match(r"""'*"*([^\s.,?!'"]*)""", places[nth_paragraph - 1])
    return begins is not None and begins[1].lower() == first_word.lower() != ""


def _placeholders(reply: str, num_placeholders: int) -> bool:
    return len(re.findall(r"\[[^\]\n]*\]", reply)) >= num_placeholders


def _postscript(reply: str, postscript_marker: str) -> bool:
    marker = re.escape(postscript_marker.strip()).replace(r"\.", r"\.\s?")  # also P. S.
    return re.search(marker, reply, re.IGNORECASE) is not None


def _bullets(reply: str, num_bullets: int) -> bool:
    return len(re.findall(r"^\s*(?:-|\*[^*])", reply, re.MULTILINE)) == num_bullets


def _constrained(reply: str) -> bool:
    return any(f"My answer is {answer}." in reply for answer in ("yes", "no", "maybe"))


def _highlights(reply: str, num_highlights: int) -> bool:
    """Texts between single asterisks, and those between double ones; of `***both***` each counts."""
    single, double = re.findall(r"\*([^\n*]*)\*", reply), re.findall(r"\*\*([^\n*]*)\*\*", reply)
    return sum(bool(text.strip()) for text in single + double) >= num_highlights


def _sections(reply: str, section_spliter: str, num_sections: int) -> bool:
    return len(re.findall(rf"{re.escape(section_spliter.strip())}\s?\d+", reply)) >= num_sections


def _json(reply: str) -> bool:
    text = re.sub(r"^```(?:json)?|```$", "", reply.strip(), flags=re.IGNORECASE)
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _title(reply: str) -> bool:
    return any(title.strip("<> \t") for title in re.findall(r"<<[^\n]+>>", reply))


def _two_responses(reply: str) -> bool:
    responses = _divided(reply, "******")
    return len(responses) == 2 and responses[0] != responses[1]


def _repeats(reply: str, prompt_to_repeat: str) -> bool:
    return reply.strip().lower().startswith(prompt_to_repeat.strip().lower())


def _ends(reply: str, end_phrase: str) -> bool:
    return reply.strip().strip('"').lower().endswith(end_phrase.strip().lower())


def _quoted(reply: str) -> bool:
    text = reply.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


def _capital_words(reply: str, capital_frequency: int, capital_relation: str) -> bool:
    words = re.findall(r"\w+(?:[-./]\w+)*", reply)
    return _compare(sum(map(str.isupper, words)), capital_relation, capital_frequency)


_CHECKS: Final[Mapping[str, Callable[..., bool]]] = {
    "change_case:capital_word_frequency": _capital_words,
    "change_case:english_capital": str.isupper,
    "change_case:english_lowercase": str.islower,
    "combination:repeat_prompt": _repeats,
    "combination:two_responses": _two_responses,
    "detectable_content:number_placeholders": _placeholders,
    "detectable_content:postscript": _postscript,
    "detectable_format:constrained_response": _constrained,
    "detectable_format:json_format": _json,
    "detectable_format:multiple_sections": _sections,
    "detectable_format:number_bullet_lists": _bullets,
    "detectable_format:number_highlighted_sections": _highlights,
    "detectable_format:title": _title,
    "keywords:existence": _keywords,
    "keywords:forbidden_words": _forbidden,
    "keywords:frequency": _frequency,
    "keywords:letter_frequency": _letter_frequency,
    _LANGUAGE: _is_in,
    "length_constraints:nth_paragraph_first_word": _nth_paragraph,
    "length_constraints:number_paragraphs": _paragraphs,
    "length_constraints:number_sentences": _sentences,
    "length_constraints:number_words": _words,
    "punctuation:no_comma": _no_comma,
    "startend:end_checker": _ends,
    "startend:quotation": _quoted,
}


# What several of them need

_RELATIONS: Final = ("less than", "at least")


def _compare(count: int, relation: str, limit: int) -> bool:
    return count < limit if relation == "less than" else count >= limit


def _count(word: str, reply: str) -> int:
    return len(re.findall(re.escape(word), reply, re.IGNORECASE))


def _divided(reply: str, divider: str) -> list[str]:
    """The parts between dividers; none where one is empty, apart from those before the first and after the last."""
    parts = [part.strip() for part in reply.split(divider)]
    return [part for part in parts if part] if all(parts[1:-1]) else []


def count_sentences(text: str) -> int:
    """The number of sentences of a text, whether or not the last one is ended by a mark.

    Unlike `core.text.sentences`, neither lines nor entries of lists end a sentence, and one may begin with a small
    letter: the published counts are those of NLTK's Punkt for English, with which this agrees for 93 of 100 replies.

    Example:
        >>> count_sentences("Dr. J. Smith came... late! Why? Nobody, e.g. his wife, asked")
        3
    """
    words = [word for word in text.split() if word.strip("\"')]}")]
    return sum(_ends_sentence(*pair) for pair in pairwise(words)) + bool(words)


def _ends_sentence(word: str, following: str) -> bool:
    word, following = word.rstrip(")\"'*]}:;").lstrip(_OPENING), following.lstrip(_OPENING)
    bare = word.removesuffix(".")
    if bare == word:
        return word.endswith(("!", "?"))
    if bare.endswith("."):
        return following[:1].isupper()
    if bare.isdigit():
        return not following[:1].islower()
    is_short = len(bare) == 1 or re.fullmatch(r"(?:[A-Za-z]\.)+[A-Za-z]", bare) or bare.casefold() in ABBREVIATIONS
    return not is_short or re.split(r"\W", following, maxsplit=1)[0] in BEGINNINGS


_OPENING: Final = "\"'(*[“‘"
