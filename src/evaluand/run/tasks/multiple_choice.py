"""Multiple-choice questions: the option that a model chooses, from its reply or from its probabilities."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Final, Literal

from evaluand.core.errors import ParameterError, SpecError, TaskError, kind_of
from evaluand.core.identity import seed_of
from evaluand.core.parameters import Text, Within
from evaluand.models.chat_model import ChatModel
from evaluand.models.completion import Completion, UnusableReply
from evaluand.models.extraction import COLUMN, Extraction
from evaluand.run.parameters import Place
from evaluand.run.tasks.asking import PromptedTask
from evaluand.run.tasks.choices import Answer, Options, read_options
from evaluand.run.tasks.conversation import (
    INPUT,
    FewShot,
    MessageTemplate,
    Shot,
)
from evaluand.trace.spans import TaskSpan

OPTIONS: Final = "options"
"""The name of the lettered options in templates."""

Method = Literal["reply", "log_likelihood"]

_PROMPT: Final = "{{ question }}\n{{ options }}\nReply with the letter of the right option alone."
_SET: Final = "set of options"
_TOP: Final = 20
_FEW: Final = 8  # tokens, in which an answer begins, after "**Answer:** "
_NO_PROBABILITIES: Final = "the server reports no probabilities of tokens for log_likelihood; use method: reply"


@dataclass(frozen=True)
class MultipleChoice(PromptedTask):
    """The option of a multiple-choice question that a model chooses.

    The output is an object: `prediction`, the option as the dataset states the right one (null if the reply names no
    option, or several: then the scorer `prediction` abstains); `position`, the letter at which it was shown; `shown`,
    what `prediction` would be for the option at each position, in order; `reply`; and `extraction`, by which rule it
    was read (see `Options.read`), or why not. With `log_likelihood` there are also `probabilities`, by option, and
    `coverage`, the probability of all letters before they were scaled to 1.

    The scorer `shown_position` compares where the right option was shown with where the chosen one was.

    Args:
        model: the model that is asked.
        choices: the input column with the list of options, or the input columns that each are one.
        labels: the input column with the letters by which the dataset calls the options; by default A, B, …
        answer: how the dataset states the right option: by `letter`, `number` (from 0), `text`, or `one_hot`, a list
            with 1 for the right option and 0 for the others.
        prompt: the template of the question; `{{ options }}` are the lettered options. `file:` and a path names a file.
        system: the template of the system message.
        shuffle: shows the options in an order of their own for each example and replication, drawn by the run's seed.
        method: `reply` reads the letter from a reply. `log_likelihood` takes the letter that is likeliest as the first
            token of the answer, after reasoning, white space, quotes, markup and `Answer:`; letters that are not among
            the likeliest 20 tokens have the probability 0. It asks for a few tokens, and again for `max_tokens` where
            these hold no answer yet.
        least_coverage: with `log_likelihood`, the least probability of all letters together with which one is taken;
            below it nothing is.
        examples: answered questions that are shown first; see `FewShot`.
        folder: the folder to which files are relative; in an experiment file, that of the experiment.
        output_schema: what each output must be; see `Task`.

    Raises:
        ParameterError: lists all invalid parameters.

    Example:
        >>> task = MultipleChoice(ChatModel("http://127.0.0.1:8080/v1", "smollm2", version="135M-Q4"))
        >>> print(task.make_messages({"question": "The sky is …", "choices": ["red", "blue"]})[0]["content"])
        The sky is …
        A. red
        B. blue
        Reply with the letter of the right option alone.
    """

    model: ChatModel
    _: KW_ONLY
    choices: str | Sequence[str] = "choices"
    labels: Text | None = None
    answer: Answer = "letter"
    prompt: Text = _PROMPT
    system: Text | None = None
    shuffle: bool = False
    method: Method = "reply"
    least_coverage: Annotated[float, Within(0, 1)] = 0.5
    examples: FewShot | None = None
    folder: str = ""
    output_schema: Any = None

    kind = "multiple_choice"
    behaviour = 3

    async def do_run(self, input: Any, task_span: TaskSpan, seed: int = 0) -> dict[str, Any]:
        messages = self.make_messages(input, seed)
        if self.method == "reply":
            completion = await self.model.complete_async(messages, task_span)
            return self.read_reply(input, completion.text, seed)
        completion = await self._begin_answer(messages, task_span)
        if completion.logprobs is None:
            raise TaskError(_NO_PROBABILITIES, code="logprobs", stops=True)
        return self._likeliest(self._options(input, seed), completion)

    def make_messages(self, input: Any, seed: int = 0) -> list[dict[str, Any]]:
        """The messages for the model, each with `role` and `content`.

        Args:
            seed: of the order of the options, if they are shuffled.

        Raises:
            TaskError: the row has no options, or a value that a template needs is missing or null.
        """
        return self._conversation.messages(_asked(input, self._options(input, seed)))

    def read_reply(self, input: Any, reply: str, seed: int = 0) -> dict[str, Any]:
        """The output for a reply.

        Args:
            seed: of the order of the options, as for `make_messages`.

        Example:
            >>> task = MultipleChoice(ChatModel("http://127.0.0.1:8080/v1", "smollm2", version="135M-Q4"))
            >>> output = task.read_reply({"question": "The sky is …", "choices": ["red", "blue"]}, "Answer: B")
            >>> output["prediction"], output["extraction"]
            ('B', {'text': 'B', 'rule': 'statement', 'candidates': 1})
        """
        options = self._options(input, seed)
        return self._output(options, *options.read(reply), reply)

    def close(self) -> None:
        super().close()
        for model in self._beginnings:
            model.close()

    async def _begin_answer(self, messages: Sequence[Mapping[str, Any]], task_span: TaskSpan) -> Completion:
        """The beginning of the reply, with the likeliest tokens in each place."""
        for model in self._beginnings:
            try:
                return await model.complete_async(messages, task_span, logprobs=_TOP)
            except UnusableReply as error:
                if error.code not in ("empty", "reasoning"):  # no answer yet
                    raise
                completion = error.completion
        return completion

    def _likeliest(self, options: Options, completion: Completion) -> dict[str, Any]:
        """The output by the probabilities of the letters; the first of several that are equally likely."""
        tokens = answer_tokens(completion.logprobs or (), completion.text)
        of_letters = letter_probabilities(tokens, options.letters)
        covered, likely = math.fsum(of_letters), sum(map(bool, of_letters))
        position: int | None = of_letters.index(max(of_letters))
        read = Extraction(options.letters[position or 0], "likeliest letter", likely)
        if not covered or covered < self.least_coverage:
            why = f"the letters have a probability of {covered:.2g} together; least_coverage is {self.least_coverage:g}"
            if not tokens:
                listed = "".join(token["token"] for token in completion.logprobs or ())
                why = f"no token that the server lists ({listed[:40]!r}) begins the answer ({completion.text[:40]!r})"
            position, read = None, Extraction.unread(why, likely)
        output = self._output(options, position, read, completion.text) | {"coverage": covered}
        if position is None or self.answer == "one_hot":
            return output
        by_option = {str(stated): p / covered for stated, p in zip(output["shown"], of_letters, strict=True)}
        return output | {"probabilities": by_option}

    def _output(self, options: Options, position: int | None, read: Extraction, reply: str) -> dict[str, Any]:
        shown = [options.stated(place, self.answer) for place in options.order]
        chosen, letter = (None, None) if position is None else (shown[position], options.letters[position])
        return {"prediction": chosen, "position": letter, "shown": shown, "reply": reply, COLUMN: read.data}

    def _options(self, input: Any, seed: int) -> Options:
        if not isinstance(input, Mapping):
            raise TaskError(f"the input is {kind_of(input)}; give the question and its choices", code="choices")
        return read_options(input, self.choices, self.labels, seed if self.shuffle else None)

    @property
    def _answer_spec(self) -> dict[str, Any]:
        columns = {"choices": self.choices if isinstance(self.choices, str) else [*self.choices], "labels": self.labels}
        asked: dict[str, Any] = {"answer": self.answer, "shuffle": self.shuffle, "method": self.method}
        asked |= {"least_coverage": self.least_coverage} if self.method == "log_likelihood" else {}
        return {"behaviour": self.behaviour, **columns, **asked, **self._conversation.spec}

    @cached_property
    def _beginnings(self) -> tuple[ChatModel, ChatModel]:
        """The model for the first tokens of a reply, and for all of it: one that reasons first needs these."""
        return replace(self.model, max_tokens=_FEW, cut_off="keep"), replace(self.model, cut_off="keep")

    @property
    def _conversation_options(self) -> dict[str, Any]:
        several = enumerate(() if isinstance(self.choices, str) else self.choices)
        columns: list[tuple[Place, Any]] = [(("choices", number), name) for number, name in several]
        columns = columns or [(("choices",), self.choices)]
        columns += [] if self.labels is None else [(("labels",), self.labels)]
        return {"columns": columns, "added": {OPTIONS: _SET}}

    def _shot_to_show(self, shot: Shot, number: int) -> Shot:
        """An example with its options, and the letter of the right one as its answer."""
        place = f"{self.examples.path if self.examples else ''}: example {number}"
        try:
            options = self._options(shot.values[INPUT], seed_of(0, shot.digest, 0))
        except TaskError as error:
            raise SpecError(f"{place}: {error}") from None
        right = options.place_of(shot.answer, self.answer)
        if right is None:
            raise SpecError(f"{place}: {shot.column} is {shot.answer!r}, which is no option by its {self.answer}")
        asked = _asked(shot.values[INPUT], options)
        return shot._replace(values={INPUT: asked, **asked}, answer=options.letters[options.order.index(right)])

    def _texts(self) -> Iterator[tuple[str, str, Place]]:
        yield from super()._texts()
        yield "user", self.prompt, ("prompt",)

    @cached_property
    def _templates(self) -> list[MessageTemplate]:
        templates = super()._templates
        if OPTIONS not in templates[-1].content.variables:
            raise ParameterError([(("prompt",), "does not show the options; write {{ options }} where they belong")])
        return templates

    def _faults(self) -> Iterator[tuple[Place, str]]:
        names = [self.choices] if isinstance(self.choices, str) else self.choices
        if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
            yield ("choices",), "is no column, and no list of columns"


def answer_tokens(tokens: Sequence[Mapping[str, Any]], answer: str) -> Sequence[Mapping[str, Any]]:
    """The tokens of an answer, without those that only introduce it: white space, quotes, markup, `Answer:`.

    Args:
        tokens: of the reply, as in `Completion.logprobs`; also those of its reasoning, if the server reports them.
        answer: the text of the answer, which is the last that the tokens hold.

    Example:
        >>> tokens = [{"token": text} for text in ("<think>", "A?", "</think>", "**", "Answer", ":", " B", "**")]
        >>> answer_tokens(tokens, "**Answer: B**")[0]
        {'token': ' B'}
    """
    written = "".join(str(token["token"]) for token in tokens)
    begin, end = written.rfind(answer), 0
    for number, token in enumerate(tokens if begin >= 0 else ()):
        end += len(token["token"])
        if not _INTRODUCTION.fullmatch(written, begin, max(begin, end)):
            return tokens[number:]
    return ()


_INTRODUCTION: Final = re.compile(r"[\W_]*(?:answer[\W_]*)?", re.IGNORECASE)


def letter_probabilities(tokens: Sequence[Mapping[str, Any]], letters: str) -> list[float]:
    """The probability of each letter as the first token of an answer, with or without marks and spaces around it.

    Args:
        tokens: of the answer, as `answer_tokens` returns them.

    Example:
        >>> token = {"token": "B", "logprob": math.log(0.5), "top": {"B": math.log(0.5), " A": math.log(0.25)}}
        >>> [round(p, 6) for p in letter_probabilities([token], "AB")]
        [0.25, 0.5]
    """
    found = dict.fromkeys(letters, 0.0)
    for token in tokens[:1]:
        for written, logprob in {token["token"]: token["logprob"], **token["top"]}.items():
            if (letter := re.sub(r"[\W_]", "", written)) in found:
                found[letter] += math.exp(logprob)
    return [*found.values()]


def _asked(input: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """What templates see: the input and its options, also as a set, in which the same question has the same."""
    return {**input, OPTIONS: options.text, _SET: sorted(options.texts)}
