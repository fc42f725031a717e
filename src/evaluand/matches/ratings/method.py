"""How systems are rated: the method and its parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypedDict, get_args

from evaluand.core.errors import DataError, SpecError, nearest
from evaluand.metrics.base.metric import FEWEST_REPLICATES, check_whole_number
from evaluand.metrics.base.signature import encode_word, format_percent
from evaluand.metrics.ratings.counts import Ties

VERSION: Final = 2  # raised whenever the same matches and parameters would give other numbers

Kind = Literal["bradley_terry", "win_rate", "equal_length"]
Contradictory = Literal["average", "tie", "drop"]
Missing = Literal["leave_out", "lose", "refuse"]
Outcomes = Literal["weighted", "discrete"]

COVARIATES: Final[Mapping[str, str]] = {
    "length": "characters",
    **{name: name for name in ("words", "headings", "list_items", "bold", "code_blocks")},
}
"""Covariate → what of a response it counts; `position` is a further one."""

POSITION: Final = "position"
LENGTH: Final = "length"


class RatingParameters(TypedDict, total=False):
    """The parameters of `RatingMethod` besides its kind, which `rate` takes too."""

    ties: str | None
    penalty: float | None
    covariates: Sequence[str]
    baseline: str | None
    outcomes: str | None
    contradictory: str
    missing: str | None
    weighted: bool
    replicates: int | None
    seed: int | None


@dataclass(frozen=True, kw_only=True)
class RatingMethod:
    """How systems are rated from matches.

    Args:
        kind: `bradley_terry`: strengths as log-odds, so that wins against strong systems count more; `win_rate`: the
            mean win rate over opponents, each of which counts equally; `equal_length`: the win rate against a baseline
            as it would be at equal length.
        ties: of Bradley–Terry: a tie is half a win (`half`), or has a parameter (`davidson`, `rao_kupper`).
        penalty: of Bradley–Terry: λ of the term −λ/2 · Σ strength², with which every system has a finite strength.
        covariates: of Bradley–Terry: `length`, `words`, `headings`, `list_items`, `bold`, `code_blocks` of responses,
            and `position`: ratings are at equal covariates.
        baseline: of win rates: the system against which they are counted, in place of all opponents;
            `equal_length` needs one.
        outcomes: `weighted` takes probabilities as shares of a win, `discrete` rounds them to the winner; by default
            `weighted`, with a parameter of ties `discrete`.
        contradictory: what becomes of a pair with opposite winners in its two orders: the `average` of both, a `tie`,
            or it is left out (`drop`).
        missing: matches without an outcome are left out (`leave_out`, the default), lost by the system whose response
            is missing (`lose`), or refused (`refuse`). Skipped responses are not missing: their matches do not count.
        weighted: each match counts by the weight of its example, which its dataset declares.
        replicates: of the bootstrap over examples, behind the intervals of Bradley–Terry without covariates.
        seed: of its draws.

    Raises:
        SpecError: a parameter is wrong, or the kind does not have it.

    Example:
        >>> RatingMethod(ties="davidson").signature(0.95)
        'bradley_terry v2 ties=davidson outcomes=discrete interval=bootstrap(1000,0) 95%'
    """

    kind: str = "bradley_terry"
    ties: str | None = None
    penalty: float | None = None
    covariates: Sequence[str] = ()
    baseline: str | None = None
    outcomes: str | None = None
    contradictory: str = "average"
    missing: str | None = None
    weighted: bool = False
    replicates: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        _check_choice("method", self.kind, get_args(Kind))
        if not isinstance(self.covariates, str | Sequence):
            raise SpecError(f"covariates must be names, such as length, not {self.covariates!r}")
        names = [self.covariates] if isinstance(self.covariates, str) else list(self.covariates)
        for name in names:
            _check_choice("a covariate", name, (*COVARIATES, POSITION))
        object.__setattr__(self, "covariates", tuple(dict.fromkeys(names)))
        for name in ("ties", "penalty", "covariates", "baseline", "replicates", "seed"):
            if getattr(self, name) not in (None, ()) and name not in _PARAMETERS_BY_KIND[self.kind]:
                owners = [kind for kind, names in _PARAMETERS_BY_KIND.items() if name in names]
                raise SpecError(f"{name} is a parameter of {' and '.join(owners)}, not of {self.kind}; leave it out")
        if not isinstance(self.weighted, bool):
            raise SpecError(f"weighted is {self.weighted!r}; give true or false")
        _check_choice("contradictory", self.contradictory, get_args(Contradictory))
        if self.missing is not None:
            _check_choice("missing", self.missing, get_args(Missing))
        if self.kind == "bradley_terry":
            self._settle_strengths()
        if self.outcomes is None:
            object.__setattr__(self, "outcomes", "discrete" if self.ties not in (None, "half") else "weighted")
        _check_choice("outcomes", self.outcomes, get_args(Outcomes))
        self._check_combinations()

    def _settle_strengths(self) -> None:
        """Fills in the defaults of Bradley–Terry, and validates its parameters."""
        defaults: dict[str, Any] = {"ties": "half", "penalty": 0.0}
        drawn = next((name for name in ("replicates", "seed") if getattr(self, name) is not None), None)
        if not self.covariates:
            defaults |= {"replicates": 1000, "seed": 0}
        elif drawn is not None:
            raise SpecError(
                f"{drawn} has no use with covariates, whose intervals come from standard errors by example and not from"
                " a bootstrap; leave it out"
            )
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        _check_choice("ties", self.ties, get_args(Ties))
        penalty: Any = self.penalty
        if isinstance(penalty, bool) or not isinstance(penalty, int | float) or not 0 <= penalty < math.inf:
            raise SpecError(f"penalty is {penalty!r}; give a finite number of at least 0")
        object.__setattr__(self, "penalty", float(penalty))
        if not self.covariates:
            check_whole_number("rate", "replicates", self.replicates, FEWEST_REPLICATES)
            check_whole_number("rate", "seed", self.seed, 0)

    def _check_combinations(self) -> None:
        has_tie_parameter = self.ties not in (None, "half")
        if self.covariates and has_tie_parameter:
            raise SpecError(
                f"covariates need ties=half, not {self.ties}: a parameter of ties cannot be fitted with them"
            )
        if has_tie_parameter and self.outcomes != "discrete":
            raise SpecError(f"ties={self.ties} counts winners; leave out outcomes, or give discrete")
        if self.kind == "equal_length":
            if self.baseline is None:
                raise SpecError("equal_length needs a baseline: the system against which win rates are counted")
            if self.missing == "lose":
                raise SpecError("missing=lose cannot be used with equal_length: a missing response has no length")
        if self.missing == "lose" and any(name != POSITION for name in self.covariates):
            raise SpecError("missing=lose cannot be used with covariates: a missing response has no length or style")

    @property
    def spec(self) -> dict[str, Any]:
        """Its identity as JSON-like data."""
        names = _PARAMETERS_BY_KIND[self.kind]
        parameters = {name: getattr(self, name) for name in (*names, *_SHARED)}
        if "covariates" in parameters:
            parameters["covariates"] = list(self.covariates)
        return {"kind": self.kind, "version": VERSION, "parameters": parameters}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> RatingMethod:
        """The method of stored ratings.

        Raises:
            DataError: somebody else has written the spec, and it has other parameters.
        """
        known = {each.name for each in fields(cls)} - {"kind"}
        if unknown := sorted(spec["parameters"].keys() - known):
            raise DataError(f"the manifest names a parameter of ratings that does not exist: {unknown[0]!r}")
        return cls(kind=spec["kind"], **spec["parameters"])

    def signature(self, confidence: float) -> str:
        """All that defines the numbers, in one line; parameters with their usual value are left out."""
        plain = RatingMethod(kind=self.kind if self.kind != "equal_length" else "win_rate")
        names = [name for name in (*_PARAMETERS_BY_KIND[self.kind], *_SHARED) if name not in ("replicates", "seed")]
        words = [
            f"{name}={encode_word(getattr(self, name))}"
            for name in names
            if getattr(self, name) != getattr(plain, name)
        ]
        interval = "clustered_wilson"
        if self.kind == "bradley_terry":
            interval = "clustered_student" if self.covariates else f"bootstrap({self.replicates},{self.seed})"
        return " ".join([self.kind, f"v{VERSION}", *words, f"interval={interval}", format_percent(confidence)])


_SHARED: Final = ("outcomes", "contradictory", "missing", "weighted")
_PARAMETERS_BY_KIND: Final[Mapping[str, Sequence[str]]] = {
    "bradley_terry": ("ties", "penalty", "covariates", "replicates", "seed"),
    "win_rate": ("baseline",),
    "equal_length": ("baseline",),
}


def _check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    if value not in choices:
        hint = nearest(value, choices) if isinstance(value, str) else ""
        raise SpecError(f"{name} is {value!r}; give one of {', '.join(choices)}{hint}")
