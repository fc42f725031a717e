"""Which language a text is in, offline: the extra `language`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from evaluand.core.errors import ParameterError
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.parameters import Within
from evaluand.core.text.language import known_languages, language_of, require_language
from evaluand.run.parameters import check_parameters
from evaluand.run.task import Task
from evaluand.trace.spans import TaskSpan


@dataclass(frozen=True)
class DetectLanguage(Task[str, str | None]):
    """The ISO 639 code of a text's language, such as `en`; no answer if it cannot be detected.

    Args:
        languages: codes of the possible languages; a text in another has no answer. By default all detectable ones.
        threshold: the probability that a language must reach, among all detectable ones; in a text of several
            languages, its share of the letters, by sentence.
        output_schema: what each output must be; see `Task`.

    Raises:
        ParameterError: a parameter is invalid.

    Example:
        >>> from evaluand.trace.tracers.no_op import NoOpTracer
        >>> DetectLanguage(["de", "en"]).run("Das ist ein deutscher Satz über das Wetter.", NoOpTracer())
        'de'
    """

    languages: Sequence[str] | None = None
    threshold: Annotated[float, Within(0, 1)] = 0.5
    output_schema: Any = field(default=None, kw_only=True)

    kind = "detect_language"
    behaviour: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.languages is None:
            return
        object.__setattr__(self, "languages", tuple(self.languages))
        require_language(self.kind)
        unknown = sorted(set(self.languages) - known_languages())
        if unknown or not self.languages:
            message = f"{unknown[0]!r} cannot be detected; give ISO 639 codes, such as 'en'" if unknown else "is empty"
            raise ParameterError([(("languages",), message)])

    def do_run(self, input: str, task_span: TaskSpan) -> str | None:
        found = language_of(input)
        if found is None:
            return None
        task_span.log(found.code, found.probability)
        possible = self.languages is None or found.code in self.languages
        return found.code if possible and found.probability >= self.threshold else None

    def identify(self) -> Identity:
        if type(self) is not DetectLanguage:
            return code_identity("task", self)
        languages = None if self.languages is None else sorted(self.languages)
        spec = {"behaviour": self.behaviour, "languages": languages, "threshold": self.threshold}
        return Identity({"kind": self.kind, **spec}, parts={name: str(value) for name, value in spec.items()})

    def prepare(self, dataset: Any) -> None:
        """Raise a SpecError if language detection is not installed."""
        require_language(self.kind)
