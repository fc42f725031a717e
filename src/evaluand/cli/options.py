"""Options that several commands share."""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from shlex import join, quote
from typing import Any, Final

import click
from click.core import ParameterSource

from evaluand.cli.command import argument, option
from evaluand.cli.settings import Settings, is_inside
from evaluand.core.errors import NotFound, SpecError, nearest
from evaluand.core.files.regular import read_regular_file
from evaluand.engine.budget import Budget
from evaluand.report.commands import DEFAULT_STORE, format_command, format_store
from evaluand.report.text import safe
from evaluand.store.addresses import Address, Place, local_folder, parse_place

COMPLETE = "_EVALUAND_COMPLETE"
"""The variable with which a shell requests completions."""

_VARIABLE: Final = "EVALUAND_STORE"

_MOST_BYTES = 64 << 20  # of an experiment file

SETTINGS = "evaluand.settings"
"""Where the context of a command has the settings of the folder."""

_STORE = "evaluand.store"
"""Where the context of a command has its store."""

DATA_SUFFIXES: Final = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".arrow", ".feather", ".xlsx", ".arff")
"""The suffixes of files that hold rows and never an experiment."""

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
TARGET = click.Path(dir_okay=False, path_type=Path)

DEFAULT_CONFIDENCE: Final = 0.95

WITH_STORE = (
    *(
        "compare",
        "drift",
        "export",
        "feedback",
        "gc",
        "grade",
        "import",
        "judge",
        "label",
        "leaderboard",
        "list",
        "plan",
        "rate",
        "report",
        "resume",
        "run",
    ),
    *("score", "show", "suite", "tradeoff", "validate", "verify", "view"),
)
"""The commands that take `--store`."""

_HINT = re.compile(rf"`(evaluand (?:{'|'.join(WITH_STORE)})\b(?! (?:metrics|scorers|tasks)\b)(?![^`]*--store)[^`]*)`")
"""A command in a message; `list metrics` and its like need no store."""


class StoreType(click.ParamType[Any]):
    """The place of a store: a folder, or an address."""

    name = "store"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Place:
        place = value if isinstance(value, Path | Address) else parse_place(value)
        folder = local_folder(place)
        if folder is not None and folder.exists() and not folder.is_dir():
            self.fail(f"Directory {str(folder)!r} is a file.", param, ctx)
        return place


def _choose_store(ctx: click.Context, param: click.Parameter, value: Place) -> Place:
    """`--store` after the command, else before it, else the environment, the settings or the default.

    Raises:
        SpecError: the store of the settings, or the default, leads out of the folder that it came with.
    """
    before: Place | None = ctx.find_root().params.get("folder")
    source = ctx.get_parameter_source("folder")
    if before is not None and source is not ParameterSource.COMMANDLINE:
        return before
    ctx.meta[_STORE] = value
    if source is ParameterSource.DEFAULT_MAP and (refused := ctx.meta[SETTINGS].explain_refusal(value)):
        raise SpecError(refused)
    if source is ParameterSource.DEFAULT and not is_inside(Path(DEFAULT_STORE), Path()):
        target = os.path.realpath(DEFAULT_STORE)
        raise SpecError(
            f"{value} is a link to {target}, outside this folder, and is not followed;"
            f" to use that store, give --store {quote(target)}"
        )
    return value


store_option = option(
    "Where everything is stored: a folder, or s3://, gs:// or az://BUCKET/PATH?catalog=postgresql://HOST/DATABASE.",
    "--store",
    callback=_choose_store,
    type=StoreType(),
    default=DEFAULT_STORE,
    envvar=_VARIABLE,
    show_default=True,
    show_envvar=True,
    metavar="DIR",
)
where_option = option(
    "Only rows that match, such as 'sex == \"F\" and age > 30'; a missing value matches nothing.",
    metavar="CONDITION",
)
model_option = option(
    "The model of all tasks that take one: one of the file's models, or PROVIDER/NAME or URL#NAME in their place.",
    metavar="NAME",
)
json_option = option("Print one JSON document instead of tables.", "--json")
force_option = option("Replace existing files.")
gate_option = option("A rule that must hold; repeatable.", "--gate", metavar="RULE")
junit_option = option("Write the gates as JUnit XML.", type=TARGET, metavar="FILE")
anytime_option = option("Bounds of gates hold at all looks together: look again as rows are added, and stop at will.")
judge_option = option("Check gates on judges without a card too; see `evaluand judge`.", "--allow-unmeasured-judges")
confidence_option = option(
    "Confidence level of the intervals.", default=DEFAULT_CONFIDENCE, show_default=True, metavar="X"
)


class ShareType(click.ParamType[Any]):
    """A share from 0 to 1, such as `85%` or `0.85`."""

    name = "SHARE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(str(value).removesuffix("%").strip())
        except ValueError:
            self.fail(f"{value!r} is no share; write 85% or 0.85", param, ctx)
        number = number / 100 if str(value).endswith("%") else number
        if not 0 <= number <= 1:
            self.fail(f"{value!r} is no share from 0 to 1; write 85% or 0.85", param, ctx)
        return number


class BudgetType(click.ParamType[Any]):
    """An amount of money, such as `5 USD`."""

    name = "budget"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return Budget.read(value)
        except SpecError as error:
            self.fail(str(error).removeprefix("budget "), param, ctx)


budget_option = option(
    "Stop before a request once so much is spent, such as '5 USD'; to be continued.",
    type=BudgetType(),
    metavar="AMOUNT",
)


def name_variables(command: click.Command, path: str) -> None:
    """Gives each option of a command and its subcommands a variable: EVALUAND_RUN_LIMIT for `run --limit`."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.envvar is None:
            flag = max(parameter.opts, key=len).lstrip("-")
            parameter.envvar = f"EVALUAND_{path}_{flag}".upper().replace("-", "_")
    for name, subcommand in command.commands.items() if isinstance(command, click.Group) else ():
        name_variables(subcommand, f"{path}_{name}")


def find_experiment(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path:
    """The experiment file that a command names, else the only one of the folder.

    Raises:
        UsageError: the folder has none or several.
    """
    if value is not None and not value.is_dir():
        _refuse_other_files(ctx, value)
        return value
    where = "this folder" if value is None else f"the folder {value}"
    folder = value or Path()
    found = sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml") and _is_experiment(path))
    if len(found) == 1:
        return found[0]
    if not found:
        raise click.UsageError(f"{where} has no experiment file; name one, or write one with `evaluand init`", ctx)
    names = ", ".join(map(str, found))
    chosen = f"evaluand {ctx.info_name} {quote(str(found[0]))}"
    raise click.UsageError(f"{where} has {len(found)} experiment files: {names}; name one: {chosen}", ctx)


def _refuse_other_files(ctx: click.Context, path: Path) -> None:
    """Refuses data and code.

    Raises:
        UsageError: says what to type.
    """
    code, _, name = str(path).partition(".py")
    if path.suffix in DATA_SUFFIXES:
        raise click.UsageError(f"{path} is data; type `evaluand score {quote(str(path))}`", ctx)
    if path.suffix == ".py" or name.startswith(":"):
        chosen = f"{{mine: {code}.py{name or ':NAME'}}}"
        raise click.UsageError(f"{path} is code; name it in an experiment file: tasks: {chosen}", ctx)


def _is_experiment(path: Path) -> bool:
    """Whether a file has the two parts that every experiment needs."""
    with suppress(OSError):
        text = read_regular_file(path, _MOST_BYTES, follow_link=True).decode(errors="replace")
        return all(re.search(part, text, re.MULTILINE) for part in _PARTS)
    return False


_PARTS: Final = (r"^dataset[ ]*:|\bkind[ ]*:[ ]*stored\b", r"^tasks[ ]*:")
"""What every experiment has: tasks, and examples or a stored run that has them."""

experiment_argument = argument(required=False, callback=find_experiment, type=click.Path(path_type=Path))


def refuse_files(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Refuses files where names of what is stored are expected.

    Raises:
        UsageError: says what to type.
    """
    names = [value] if isinstance(value, str) else value or []
    if names and all(Path(name).suffix in DATA_SUFFIXES and Path(name).is_file() for name in names):
        listed = ", ".join(names)
        command = "rate" if all(map(has_battles, names)) else "score"
        raise click.UsageError(f"{listed}: data, and no stored name; type `evaluand {command} {join(names)}`", ctx)
    return value


def is_stored(store: Any, source: str, kinds: Sequence[str]) -> bool:
    """Whether something stored has this name or id; false for a file.

    Args:
        kinds: those of the names that may be meant.

    Raises:
        UsageError: it is neither.
    """
    from evaluand.store.store import resolve

    try:
        resolve(store, source)
    except NotFound:
        if Path(source).exists():
            return False
        names = [ref.name for ref in store.refs() if ref.kind in kinds]
        near = nearest(source, names)
        raise click.UsageError(f"{source}: no such file, and nothing stored with this name{near}") from None
    return True


def has_battles(path: str) -> bool:
    """Whether a file has columns that say who met and who won."""
    from evaluand.core.errors import EvaluandError
    from evaluand.data.sources import open_file
    from evaluand.matches.battle_rows import BattleColumns

    try:
        BattleColumns.choose(open_file(path).schema.names, {})
    except (EvaluandError, OSError):
        return False
    return True


def refuse_options(names: Sequence[str], reason: str) -> None:
    """Refuses options that have no meaning together with the others.

    Raises:
        UsageError: names the first.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in names and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[0]} {reason}")


def suggest_command(command: str, what: str | Sequence[str], folder: Place, *, elsewhere: bool = False) -> str:
    """A command line that can be copied: quoted, with `--store` unless the store is the default.

    Args:
        what: the argument of the command, or several.
        elsewhere: the command will run at another time in another shell, whose environment is unknown.
    """
    if elsewhere:
        return format_command(command, what, folder)
    words = join([what] if isinstance(what, str) else what)
    return f"evaluand {command} {words}{format_store(folder, _usual_store())}"


def present_store() -> str:
    """` --store DIR` with the store of the present command; empty if commands use it without."""
    ctx = click.get_current_context(silent=True)
    folder: Place | None = (ctx.meta.get(_STORE) or ctx.find_root().params.get("folder")) if ctx else None
    return format_store(folder, _usual_store()) if folder else ""


def name_store(message: str, store: str | None = None) -> str:
    """A message in which commands between backticks end with `--store DIR`, so that they can be copied.

    What is below the command line knows its store, but not how a command reaches it.

    Args:
        store: the words to add; those of `present_store` if None.
    """
    store = present_store() if store is None else store
    return _HINT.sub(lambda hint: f"`{hint[1]}{store}`", message)


def name_store_in(judges: Sequence[Any]) -> None:
    """Adds `--store DIR` to the commands in facts about judges, which come from below the command line."""
    for judge in judges:
        judge["text"] = name_store(judge["text"])


def _usual_store() -> str | Place | None:
    """The store of a command without `--store`; None if such a command would be refused."""
    if chosen := os.environ.get(_VARIABLE):
        return chosen
    ctx = click.get_current_context(silent=True)
    settings: Settings | None = ctx.meta.get(SETTINGS) if ctx else None
    if settings and settings.store:
        return None if settings.explain_refusal(settings.store) else settings.store
    return DEFAULT_STORE if is_inside(Path(DEFAULT_STORE), Path()) else None


def complete_artifact(ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """The names, else the ids, of artifacts that begin with a text, for shell completion. Never fails."""
    from evaluand.store.kinds import kind_names
    from evaluand.store.opening import open_store

    chosen = ctx.params.get("folder") or os.environ.get(_VARIABLE)
    if not (chosen or is_inside(Path(DEFAULT_STORE), Path())):
        return []
    try:
        store = open_store(chosen or DEFAULT_STORE)
        if not store.top.exists():
            return []
        names = sorted({ref.name for ref in store.refs() if ref.name.startswith(begun)})
        ids = [] if names or len(begun) < _FEWEST else (id for kind in kind_names() for id in store.ids(kind))
        return [name for name in names if safe(name) == name] + [id for id in ids if id.startswith(begun)]
    except Exception:  # completion must not print errors
        return []


_FEWEST = 2
