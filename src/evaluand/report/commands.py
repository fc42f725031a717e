"""Command lines that can be copied."""

from collections.abc import Sequence
from shlex import join, quote
from typing import Final

from evaluand.store.addresses import Place

DEFAULT_STORE: Final = ".evaluand"


def format_command(command: str, what: str | Sequence[str], folder: Place) -> str:
    """A command line on a store for any shell in the present folder.

    Args:
        what: the argument of the command, or several.

    Example:
        >>> from pathlib import Path
        >>> format_command("show", "my run", Path("results"))
        "evaluand show 'my run' --store results"
    """
    words = join([what] if isinstance(what, str) else what)
    return f"evaluand {command} {words}{format_store(folder, DEFAULT_STORE)}"


def format_store(folder: Place, usual: str | Place | None) -> str:
    """` --store DIR`; empty if it is the store that commands use without.

    Args:
        usual: that store; None if such a command would be refused.
    """
    return "" if usual and str(folder) == str(usual) else f" --store {quote(str(folder))}"
