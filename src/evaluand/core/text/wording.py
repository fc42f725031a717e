"""Words for counts, the same in every message, table and page."""


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """A count with its noun, in the singular for exactly one.

    Args:
        count: how many.
        noun: for one.
        nouns: for any other number; `noun` with an s if None.

    Example:
        >>> plural(1, "row"), plural(1200, "row"), plural(0, "query", "queries")
        ('1 row', '1,200 rows', '0 queries')
    """
    return f"{count:,} {pluralize(count, noun, nouns)}"


def pluralize(count: int, noun: str, nouns: str | None = None) -> str:
    """The noun alone, in the form that suits a count.

    Example:
        >>> pluralize(1, "value"), pluralize(3, "value")
        ('value', 'values')
    """
    return noun if count == 1 else nouns or f"{noun}s"
