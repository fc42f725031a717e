"""Views of outputs and of expected values: in the shape that a scorer needs, after they have passed through adapters.

What a task returned and what the dataset expects stay as they are stored; each scorer may see them in its own shape. A
view is applied when responses are graded, and is part of the identity of the scores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from evaluand.core.errors import SpecError, kind_of
from evaluand.core.fingerprint import Identity
from evaluand.data.adapters.base.options import AdapterError, WrongType
from evaluand.data.view import ViewSpec
from evaluand.evaluation.scorer import Scorer, WrappedScorer


class _View(WrappedScorer):
    """A scorer that sees one of its arguments after it has passed through adapters.

    Attributes:
        argument: the argument.
        noun: what the argument is called in messages.
        key: the name of the view in identities and messages.
    """

    kind = "view"
    argument: ClassVar[str]
    noun: ClassVar[str]
    key: ClassVar[str]

    def __init__(self, scorer: Scorer, adapters: Any, schema: Any = None) -> None:
        self.scorer = scorer
        spec = ViewSpec.of(adapters, schema)
        self.pipeline, self.schema = spec.pipeline, spec.schema
        if self.pipeline.on_error != "abort":
            raise SpecError(f"an {self.noun} that a view cannot transform costs its grade: leave onError out")
        if "source" in scorer.arguments:
            raise SpecError(
                f"scorer {scorer.kind!r} selects from what was recorded, which no view changes; leave it out"
            )
        if self.pipeline.last:
            raise SpecError(f"FileUpload makes requests; it has no place in a view of {self.noun}s")
        if scorer.is_batch:
            self.score_batch = self._score_batch

    def identify(self) -> Identity:
        inner: Identity = self.scorer.identify()
        view = {self.key: self.pipeline.spec} | ({f"{self.key}_schema": self.schema.spec} if self.schema else {})
        return replace(inner, spec={**inner.spec, **view})

    def score(self, *arguments: Any) -> Any:
        return self.scorer.score(*self._change(arguments, self._transform))

    def _score_batch(self, *arguments: Any) -> Any:
        return self.scorer.score_batch(*self._change(arguments, lambda values: [*map(self._transform, values)]))

    def _change(self, arguments: Sequence[Any], change: Any) -> list[Any]:
        """The arguments with a change of the one that is viewed."""
        named = zip(self.arguments, arguments, strict=True)
        return [change(value) if name == self.argument else value for name, value in named]

    def _transform(self, value: Any) -> Any:
        if isinstance(value, list):
            return [new for place, item in enumerate(value) for new in self._apply(item, f"{self.key}: item {place}")]
        if not isinstance(value, Mapping) and self.pipeline.adapters:
            raise WrongType(f"the {self.noun} is {kind_of(value)}; a view is made of objects")
        rows = self._apply(dict(value) if isinstance(value, Mapping) else value, self.key)
        return rows[0] if len(rows) == 1 else list(rows)

    def _apply(self, row: Any, where: str) -> Sequence[Any]:
        try:
            rows = self.pipeline.apply(row)
        except AdapterError as error:
            error.add_place(where)
            raise
        for each in rows if self.schema else ():
            if self.schema and (fault := self.schema.fault(each, self.noun)):
                raise WrongType(f"{where}: {fault}: it does not fit the schema of the view")
        return rows


class OutputView(_View):
    """A scorer that sees outputs after they have passed through adapters.

    An output that is an object becomes the row that the adapters make of it, or the list of rows where these are none
    or several; an output that is a list of items, such as a tagger's, becomes the list of all that is made of each.

    Args:
        scorer: what grades.
        adapters: a `Pipeline`, or its JSON configuration, which may have a `schema` in addition.
        schema: what each row that the adapters make must be, in any form that `ValueSchema` takes; an output that
            breaks it has no score.

    Raises:
        SpecError: the adapters are wrong as configured, have onError, or make requests.

    Example:
        >>> from evaluand.evaluation.scorers.exact_match import ExactMatch
        >>> adapters = [{"kind": "TransformJSON", "configuration": "$.choices[0].text"}]
        >>> OutputView(ExactMatch(), adapters).score({"choices": [{"text": "4"}]}, "4").value
        1.0
    """

    argument = noun = "output"
    key = "view"

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:
        self.scorer.check(expected, [self._transform(output) for output in outputs])


class ExpectedView(_View):
    """A scorer that sees expected values after they have passed through adapters; see `OutputView` for how.

    A missing expected value stays missing.

    Args:
        scorer: what grades.
        adapters, schema: as for `OutputView`.

    Raises:
        SpecError: as for `OutputView`.

    Example:
        >>> from evaluand.evaluation.scorers.exact_match import ExactMatch
        >>> adapters = [{"kind": "TransformJSON", "configuration": "$.best.text"}]
        >>> ExpectedView(ExactMatch(), adapters).score("4", {"best": {"text": "4"}, "others": ["four"]}).value
        1.0
    """

    argument, noun = "expected", "expected value"
    key = "expected_view"

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:
        self.scorer.check(self._transform(expected), outputs)

    def check_kind(self, expected: Any, kind: str) -> None:
        self.scorer.check_kind(self._transform(expected), kind)

    def unanswered(self, expected: Any) -> Mapping[str, Any] | None:
        return super().unanswered(self._transform(expected))

    def _transform(self, value: Any) -> Any:
        return None if value is None else super()._transform(value)
