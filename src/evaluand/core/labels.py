"""Names of artifacts: those in an experiment, and short labels for tables and figures."""

from collections import Counter
from collections.abc import Sequence
from urllib.parse import unquote


def join_name(experiment: str, part: str) -> str:
    """The name of a part of an experiment, such as a task: `experiment_of` finds the experiment again.

    Example:
        >>> join_name("a/b", "mine")
        'a%2Fb/mine'
    """
    return f"{experiment.replace('%', '%25').replace('/', '%2F')}/{part}"


def experiment_of(name: str) -> str | None:
    """The experiment in a name that `join_name` made; None for a name of anything else.

    Example:
        >>> experiment_of("a%2Fb/mine"), experiment_of("mine")
        ('a/b', None)
    """
    experiment, slash, _ = name.partition("/")
    return unquote(experiment) if slash else None


def shown_name(name: str) -> str:
    """A name as people wrote its parts: without what `join_name` escaped, in suites twice.

    Example:
        >>> shown_name("a%2Fb/mine"), shown_name(join_name(join_name("a/b", "c/d"), "mine"))
        ('a/b/mine', 'a/b/c/d/mine')
    """
    experiment, slash, part = name.partition("/")
    plain = experiment.replace("%2F", "/").replace("%25", "%")
    return shown_name(f"{plain}/{part}") if slash and plain != experiment else name


def short_labels(names: Sequence[str | None], ids: Sequence[str]) -> list[str]:
    """Distinct short labels of artifacts: `exp/a` and `exp/b` become `a` and `b`.

    Example:
        >>> short_labels(["exp/a", "exp/b", None], ["11" * 16, "22" * 16, "33" * 16])
        ['exp/a', 'exp/b', '333333333333']
        >>> short_labels(["exp/short/small", "exp/long/small"], ["11" * 16, "22" * 16])
        ['short/small', 'long/small']
    """
    known = [name or id[:12] for name, id in zip(names, ids, strict=True)]
    parts = [label.split("/") for label in known]
    while all(len(each) > 1 for each in parts) and len({each[0] for each in parts}) == 1:
        parts = [each[1:] for each in parts]
    short = ["/".join(each) for each in parts]
    seen: Counter[str] = Counter()
    labels = []
    for label in short:  # artifacts with the same content share one id, and so its name
        seen[label] += 1
        labels.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return labels
