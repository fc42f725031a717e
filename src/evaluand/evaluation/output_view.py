"""Output views: outputs in the shape that a scorer asks for, after they have passed through adapters.

What a task gave stays as it is stored; each scorer may see it in its own shape. A view is applied when responses are
graded, and is part of the identity of the grades.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evaluand.core.errors import SpecError, kind_of
from evaluand.core.fingerprint import Identity
from evaluand.data.adapters.base.options import AdapterError, WrongType
from evaluand.data.view import ViewSpec
from evaluand.evaluation.scorer import Scorer


class OutputView(Scorer):
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

    kind = "view"

    def __init__(self, scorer: Scorer, adapters: Any, schema: Any = None) -> None:
        self.scorer = scorer
        spec = ViewSpec.of(adapters, schema)
        self.pipeline, self.schema = spec.pipeline, spec.schema
        if self.pipeline.on_error != "abort":
            raise SpecError("an output that a view cannot transform costs its grade: leave onError out")
        if "source" in scorer.arguments:
            raise SpecError(
                f"scorer {scorer.kind!r} selects from what was recorded, which no view changes; leave it out"
            )
        if self.pipeline.last:
            raise SpecError("FileUpload makes requests; it has no place in a view of outputs")
        self.cheap, self.by_target = scorer.cheap, scorer.by_target  # type: ignore[misc]
        if scorer.is_batch:
            self.score_batch = self._score_batch

    @property
    def columns(self) -> Mapping[str, str]:
        return self.scorer.columns

    @property
    def readable(self) -> tuple[str, ...]:
        return self.scorer.readable

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.scorer.arguments

    @property
    def is_async(self) -> bool:
        return self.scorer.is_async

    def identify(self) -> Identity:
        inner = self.scorer.identify()
        view = {"view": self.pipeline.spec} | ({"view_schema": self.schema.spec} if self.schema else {})
        return replace(inner, spec={**inner.spec, **view})

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:
        self.scorer.check(expected, [self._seen(output) for output in outputs])

    def unanswered(self, expected: Any) -> Mapping[str, Any] | None:
        return self.scorer.unanswered(expected)

    def score(self, *arguments: Any) -> Any:
        return self.scorer.score(*self._with(arguments, self._seen))

    def _score_batch(self, *arguments: Any) -> Any:
        batch: Any = self.scorer
        return batch.score_batch(*self._with(arguments, lambda outputs: [self._seen(output) for output in outputs]))

    def _with(self, arguments: Sequence[Any], change: Any) -> list[Any]:
        """The arguments with a change of the output."""
        named = zip(self.arguments, arguments, strict=True)
        return [change(value) if name == "output" else value for name, value in named]

    def _seen(self, output: Any) -> Any:
        if isinstance(output, list):
            return [new for place, item in enumerate(output) for new in self._made(item, f"view: item {place}")]
        if not isinstance(output, Mapping) and self.pipeline.adapters:
            raise WrongType(f"the output is {kind_of(output)}; a view is made of objects")
        made = self._made(dict(output) if isinstance(output, Mapping) else output, "view")
        return made[0] if len(made) == 1 else list(made)

    def _made(self, row: Any, where: str) -> Sequence[Any]:
        try:
            made = self.pipeline.apply(row)
        except AdapterError as error:
            error.add_place(where)
            raise
        for each in made if self.schema else ():
            if self.schema and (fault := self.schema.fault(each)):
                raise WrongType(f"{where}: {fault}: it does not fit the schema of the view")
        return made
