"""Commands that people try first, and what to type instead."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import PurePath
from shlex import join
from typing import Final

_SCORE: Final = (
    "evaluand score FILE --truth COLUMN --prediction COLUMN scores predictions, evaluand run FILE runs an experiment"
)
_COMPARE: Final = (
    "evaluand compare NAME OTHER compares what is stored, evaluand score FILE … --prediction A --prediction B columns"
)
_VIEW: Final = "evaluand view opens what is stored in a browser"
_REPORT: Final = "evaluand report NAME writes a report as one HTML file"
_LIST: Final = "evaluand list lists what is stored"
_GC: Final = "evaluand gc removes what is no longer needed"

_EVALUATING: Final = ("evaluate", "eval", "test", "benchmark", "bench", "scores", "grade", "predict", "redteam")
_NEAR_NAMES: Final = {
    **dict.fromkeys(_EVALUATING, _SCORE),
    **dict.fromkeys(("diff", "cmp", "versus", "vs", "ab", "rank"), _COMPARE),
    **dict.fromkeys(("ls", "status", "log", "logs", "history", "runs", "experiments", "results", "datasets"), _LIST),
    **dict.fromkeys(("metrics", "metric", "measures"), "evaluand list metrics lists the names of metrics"),
    **dict.fromkeys(("scorers", "scorer", "graders"), "evaluand list scorers lists the kinds of scorers"),
    **dict.fromkeys(("tasks", "task", "models", "providers"), "evaluand list tasks lists the kinds of tasks"),
    **dict.fromkeys(("new", "create", "start", "quickstart"), "evaluand init creates a small project"),
    **dict.fromkeys(
        ("check", "lint", "doctor", "config"), "evaluand validate FILE finds what is wrong with an experiment"
    ),
    **dict.fromkeys(("html", "plot"), _REPORT),
    **dict.fromkeys(("open", "ui", "serve", "dashboard", "web", "studio"), _VIEW),
    **dict.fromkeys(("rm", "delete", "remove", "clean", "cache", "prune", "clear"), _GC),
    **dict.fromkeys(("retry", "rerun", "again"), "evaluand run FILE --retry-failed repeats what failed"),
    **dict.fromkeys(("continue", "restart"), "evaluand resume NAME continues what was interrupted"),
    **dict.fromkeys(("judge", "annotate", "review"), "evaluand label NAME lets people grade answers"),
    **dict.fromkeys(("fairness", "bias"), "evaluand score FILE --truth … --prediction … --by COLUMN compares groups"),
    **dict.fromkeys(("info", "inspect", "describe", "cat"), "evaluand show NAME shows what is stored under a name"),
    **dict.fromkeys(("download", "save", "dump"), "evaluand export NAME writes what is stored as a file"),
    **dict.fromkeys(("docs", "man"), "evaluand --help lists the commands, evaluand COMMAND --help explains one"),
}

DATA_SUFFIXES: Final = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".arrow", ".feather", ".xlsx", ".arff")
"""The suffixes of files that hold rows and never an experiment."""


def advise(name: str, rest: Sequence[str], commands: Iterable[str]) -> str:
    """The end of a message about an unknown command: what to type.

    Args:
        name: the unknown command.
        rest: the arguments after it.

    Example:
        >>> advise("lst", [], ["list", "run"]), advise("evaluate", ["e.yaml"], ["run"])
        ('did you mean `evaluand list`?', 'type `evaluand run e.yaml`')
    """
    known, lower = [*commands], name.lower()
    if lower in known:
        return f"type `evaluand {join([lower, *rest])}`"
    if command := command_for([name]):
        return f"type `evaluand {join([command, name, *rest])}`"
    if lower in _EVALUATING and (command := command_for(rest)):
        return f"type `evaluand {join([command, *rest])}`"
    if lower == "inspect" and command_for(rest) == "run":
        return (
            f"type `evaluand {join(['validate', '--access', *rest])}`, which shows what it would use and uses nothing"
        )
    if lower in _NEAR_NAMES:
        return _NEAR_NAMES[lower]
    close = get_close_matches(lower, known, n=1)
    return f"did you mean `evaluand {close[0]}`?" if close else f"the commands are {', '.join(known)}"


def command_for(arguments: Sequence[str]) -> str | None:
    """The command that takes a file with this suffix as its first argument."""
    suffix = PurePath(arguments[0]).suffix.lower() if arguments else ""
    if suffix in (".yaml", ".yml"):
        return "run"
    return "score" if suffix in DATA_SUFFIXES else None
