"""Which groups a disparity compares: with a reference group, by named pairs, within strata, of a smallest size."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evaluand.core.errors import SpecError

BONFERRONI: Final = "bonferroni"
ADJUSTMENTS: Final = (BONFERRONI, "fdr_by")
"""Intervals of all disparities of a request that hold at once (Bonferroni), or of which those that are found err in at
most the level's share on average, whatever their dependence (Benjamini & Yekutieli)."""

Group = tuple[tuple[str, str], ...]
"""Attribute and value, in the order of a grouping."""


@dataclass(frozen=True)
class GroupRules:
    """What is compared, beside or instead of the two groups that differ most.

    Attributes:
        reference: the value of each attribute that defines the reference group; differences and ratios are then those
            to this group: of the group farthest from it, and of each group.
        pairs: pairs of groups, whose differences and ratios are computed too.
        given: attributes that define strata: disparities are computed within each, and standardised over them.
        smallest: groups that fewer rows rest on are listed and not judged; 0 judges all.
        adjust: one of `ADJUSTMENTS`, for the disparities of all measures of a request together.

    Example:
        >>> read_rules([("race",)], reference="Caucasian", smallest=50).reference
        (('race', 'Caucasian'),)
    """

    reference: Group = ()
    pairs: tuple[tuple[Group, Group], ...] = ()
    given: tuple[str, ...] = ()
    smallest: int = 0
    adjust: str = BONFERRONI

    @property
    def spec(self) -> dict[str, Any]:
        """The rules that are set, as data."""
        spec: dict[str, Any] = {"reference": dict(self.reference), "given": list(self.given), "smallest": self.smallest}
        spec["pairs"] = [[dict(group) for group in pair] for pair in self.pairs]
        spec["adjust"] = self.adjust.removeprefix(BONFERRONI)  # the default is no choice
        return {name: value for name, value in spec.items() if value}

    def reference_of(self, by: Sequence[str]) -> dict[str, str] | None:
        """The reference group of a grouping."""
        return {name: dict(self.reference)[name] for name in by} if self.reference else None

    def pairs_of(self, by: Sequence[str]) -> list[tuple[dict[str, str], dict[str, str]]]:
        """The pairs of groups of a grouping."""
        both = ((dict(one), dict(other)) for one, other in self.pairs)
        return [(one, other) for one, other in both if one.keys() == set(by)]


def read_rules(
    by: Sequence[Sequence[str]],
    *,
    reference: Any = None,
    pairs: Any = (),
    given: str | Sequence[str] = (),
    smallest: Any = 0,
    adjust: Any = BONFERRONI,
) -> GroupRules | None:
    """The rules as a user writes them; None if none is set.

    Args:
        by: the groupings that they apply to.
        reference: a value, if there is one attribute; a list of values in the order of the attributes; or attribute →
            value.
        pairs: lists of two groups, each written like a reference.
        given: attributes that define strata.
        smallest: a number of rows.
        adjust: one of `ADJUSTMENTS`.

    Raises:
        SpecError: all faults.
    """
    faults: list[str] = []
    names = (given,) if isinstance(given, str) else tuple(given)
    found = _read_reference(reference, by, faults)
    couples = tuple(_read_pairs(pairs, by, faults))
    faults += [
        f"given: {name!r} defines the groups that are compared, so it cannot define strata too"
        for name in names
        if any(name in each for each in by)
    ]
    if isinstance(smallest, bool) or not isinstance(smallest, int) or smallest < 0:
        faults.append(f"smallest is {smallest!r}; write a number of rows, such as 50")
    if adjust not in ADJUSTMENTS:
        faults.append(f"adjust is {adjust!r}; write {' or '.join(ADJUSTMENTS)}")
    if faults:
        raise SpecError("\n".join(faults))
    rules = GroupRules(found, couples, names, smallest, adjust)
    return rules if rules.spec else None


def _read_reference(value: Any, by: Sequence[Sequence[str]], faults: list[str]) -> Group:
    if value is None:
        return ()
    group = _read_group("reference", value, by, faults)
    lacking = [name for name in dict.fromkeys(name for each in by for name in each) if name not in group]
    if group and lacking:
        faults.append(f"reference has no {lacking[0]!r}, by which groups are compared; add its value")
    return tuple(group.items()) if not lacking else ()


def _read_pairs(pairs: Any, by: Sequence[Sequence[str]], faults: list[str]) -> Iterator[tuple[Group, Group]]:
    example = "write lists of two groups: [[African-American, Caucasian]]"
    if not isinstance(pairs, list | tuple):
        faults.append(f"pairs is {pairs!r}; {example}")
        return
    for place, pair in enumerate(pairs):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            faults.append(f"pairs[{place}] is {pair!r}; {example}")
            continue
        one, other = (_read_group(f"pairs[{place}]", group, by, faults) for group in pair)
        if one == other and one:
            faults.append(f"pairs[{place}]: both are the same group")
        elif one and other and (one.keys() != other.keys() or not any(one.keys() == {*each} for each in by)):
            faults.append(f"pairs[{place}]: the groups are not of one grouping under by")
        elif one and other:
            yield tuple(one.items()), tuple(other.items())


def _read_group(what: str, value: Any, by: Sequence[Sequence[str]], faults: list[str]) -> dict[str, str]:
    """Attribute → value of a group; empty with a fault."""
    known = {name for each in by for name in each}
    if isinstance(value, Mapping):
        unknown = [name for name in value if name not in known]
        if unknown:
            faults.append(f"{what}: {unknown[0]!r} is not under by")
            return {}
        return {str(name): _text(each) for name, each in value.items()}
    values = [*value] if isinstance(value, list | tuple) else [value]
    fitting = {tuple(each) for each in by if len(each) == len(values)}
    if len(fitting) != 1:
        example = ", ".join(f"{name}: …" for name in next(iter(by), ()))
        faults.append(f"{what} is {value!r}, and several groupings could be meant; write {{{example}}}")
        return {}
    return dict(zip(fitting.pop(), map(_text, values), strict=True))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_beyond_none(disparity: str, low: float | None, high: float | None) -> bool:
    """Whether an interval shows a disparity: a difference above 0, or a ratio below 1.

    Example:
        >>> is_beyond_none("difference", 0.01, 0.2), is_beyond_none("ratio_to_overall", 0.8, 1.0)
        (True, False)
    """
    if disparity.startswith("ratio"):
        return high is not None and high < 1
    return disparity.startswith("difference") and low is not None and low > 0
