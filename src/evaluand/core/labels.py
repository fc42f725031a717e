"""Short labels of artifacts for tables and figures."""

from collections import Counter
from collections.abc import Sequence


def short_labels(names: Sequence[str | None], ids: Sequence[str]) -> list[str]:
    """Distinct short labels of artifacts: `exp/a` and `exp/b` become `a` and `b`.

    Example:
        >>> short_labels(["exp/a", "exp/b", None], ["11" * 16, "22" * 16, "33" * 16])
        ['exp/a', 'exp/b', '333333333333']
    """
    known = [name or id[:12] for name, id in zip(names, ids, strict=True)]
    heads = {label.rpartition("/")[0] for label in known}
    short = [label.rpartition("/")[2] for label in known] if len(heads) == 1 else known
    seen: Counter[str] = Counter()
    labels = []
    for label in short:  # artifacts with the same content share one id, and so its name
        seen[label] += 1
        labels.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return labels
