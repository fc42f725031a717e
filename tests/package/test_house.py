"""The package stays a house with few rooms: see the rooms and their order in ARCHITECTURE.md."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support.house_size import Size
from support.kind_literals import HOMES, find_kind_literals
from support.places import ROOT_FOLDER

PACKAGE = ROOT_FOLDER / "src" / "evaluand"
MOST_LAYERS, MOST_ENTRIES, MOST_PARAMETERS = 17, 23, 12
BUDGETS = tomllib.loads(Path(__file__).with_name("budgets.toml").read_text(encoding="utf-8"))
NOT_COUNTED = {"__init__.py", "_version.py", "py.typed", "__pycache__"}
OPEN_TO_INTEROP = {"interop", "_version"}


def contracts(kind: str) -> list[dict[str, Any]]:
    settings = tomllib.loads((ROOT_FOLDER / "pyproject.toml").read_text(encoding="utf-8"))
    return [each for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == kind]


def test_rooms_stand_in_few_layers() -> None:
    [order] = contracts("layers")
    assert len(order["layers"]) <= MOST_LAYERS
    assert "ignore_imports" not in order


def test_every_room_has_its_place_in_the_order() -> None:
    [order] = contracts("layers")
    named = re.findall(r"\w+", " ".join(order["layers"]))
    assert sorted(named) == sorted(
        path.stem for path in PACKAGE.iterdir() if path.name not in NOT_COUNTED - {"_version.py"}
    )


def test_the_top_of_the_package_has_few_entries() -> None:
    assert len([path for path in PACKAGE.iterdir() if path.name not in NOT_COUNTED]) <= MOST_ENTRIES


def test_no_native_room_may_import_interop() -> None:
    [contract] = [each for each in contracts("forbidden") if each["forbidden_modules"] == ["evaluand.interop"]]
    rooms = {path.stem for path in PACKAGE.iterdir() if path.name not in NOT_COUNTED} - OPEN_TO_INTEROP
    assert {module.removeprefix("evaluand.") for module in contract["source_modules"]} == rooms


def forbidding(module: str) -> set[str]:
    """The modules that may not import `module`, by the contracts that forbid it."""
    return {
        source
        for each in contracts("forbidden")
        if module in each["forbidden_modules"]
        for source in each["source_modules"]
    }


def modules_in(folder: str) -> set[str]:
    return {
        f"evaluand.{folder.replace('/', '.')}.{path.stem}"
        for path in (PACKAGE / folder).iterdir()
        if path.name not in NOT_COUNTED
    }


def test_the_package_itself_may_not_import_interop() -> None:
    [contract] = [each for each in contracts("forbidden") if each["source_modules"] == ["evaluand"]]
    assert contract["forbidden_modules"] == ["evaluand.interop", "evaluand.interop.**"]
    assert contract["as_packages"] is False


def test_every_kind_of_adapter_is_independent_and_closed_to_what_data_has_in_common() -> None:
    kinds = modules_in("data/adapters") - {"evaluand.data.adapters.base"}
    assert {*kinds} in [{*each["modules"]} for each in contracts("independence")]
    for kind in kinds:
        assert forbidding(kind) == {"evaluand.data.*", "evaluand.data.adapters.base"}


@pytest.mark.parametrize(
    ("room", "kinds"),
    [
        ("apps", "apps.frameworks"),
        ("data", "data.schema.named"),
        ("evaluation", "evaluation.providers"),
        ("evaluation", "evaluation.scorers"),
        ("run", "run.tasks"),
        ("trace", "trace.tracers"),
    ],
)
def test_no_module_of_a_room_may_import_its_kinds(room: str, kinds: str) -> None:
    assert f"evaluand.{room}.*" in forbidding(f"evaluand.{kinds}")


def test_no_module_of_evaluation_but_kinds_may_import_feedback() -> None:
    kinds = {f"evaluand.evaluation.{name}" for name in ("feedback", "providers", "scorers")}
    assert forbidding("evaluand.evaluation.feedback") == modules_in("evaluation") - kinds


def test_architecture_shows_the_layers_of_the_contract() -> None:
    [order] = contracts("layers")
    page = (ROOT_FOLDER / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page, flags=re.MULTILINE)
    assert [int(number) for number, _ in rows] == [*range(1, len(rows) + 1)]
    shown = [re.findall(r"\w+", rooms) for _, rooms in rows]
    assert shown == [re.findall(r"\w+", layer) for layer in order["layers"] if layer != "_version"]


def test_every_module_named_in_architecture_exists() -> None:
    page = (ROOT_FOLDER / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py|\w+(?:/\w+)*/)`", page)
    known = [f"/{path.relative_to(PACKAGE)}{'/' * path.is_dir()}" for path in PACKAGE.rglob("*")]
    missing = [
        name
        for name in named
        if not (ROOT_FOLDER / name).exists() and not any(path.endswith(f"/{name}") for path in known)
    ]
    assert len(named) > 50
    assert missing == []


def modules_named_in(docstring: str, folder: Path) -> list[str]:
    """The entries of each list that begins with a module, and words such as (`pairing`)."""
    named = re.findall(r"\(`([a-z_]+)`\)", docstring)
    for block in re.findall(r"(?:^ *[\w/.]+(?:, [\w/.]+)* {2,}\S.*\n?)+", docstring, flags=re.MULTILINE):
        entries = re.findall(r"^ *([\w/.]+(?:, [\w/.]+)*) {2,}\S", block, flags=re.MULTILINE)
        names = [name for entry in entries for name in entry.split(", ")]
        if module_exists(names[0], folder):
            named += names
    return named


def module_exists(name: str, folder: Path) -> bool:
    return any((place / each).exists() for place in (folder, folder.parent) for each in (name, f"{name}.py"))


def test_every_module_named_in_the_docstring_of_a_package_exists() -> None:
    named = [
        (name, path.parent)
        for path in PACKAGE.rglob("__init__.py")
        for name in modules_named_in(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "", path.parent)
    ]
    assert len(named) > 70
    assert [f"{folder.name}: {name}" for name, folder in named if not module_exists(name, folder)] == []


@pytest.mark.parametrize("room", sorted(path.stem for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()))
def test_every_name_that_a_room_exports_can_be_imported(room: str) -> None:
    package = importlib.import_module(f"evaluand.{room}")
    exported = getattr(package, "__all__", [])
    assert [name for name in exported if not hasattr(package, name)] == []


@pytest.mark.parametrize("room", sorted(path.stem for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()))
def test_no_module_has_the_name_of_something_that_its_room_exports(room: str) -> None:
    modules = {path.stem for path in (PACKAGE / room).iterdir() if path.name not in NOT_COUNTED}
    assert modules & {*getattr(importlib.import_module(f"evaluand.{room}"), "__all__", [])} == set()


def test_every_room_keeps_its_budget() -> None:
    assert Size.of(PACKAGE).faults(BUDGETS) == []


def test_a_room_that_grows_beyond_its_budget_is_named_in_one_sentence(tmp_path: Path) -> None:
    budgets = {"rooms": {"run": 4877, "(top)": 1}, "used_once": 1.0, "p90_lines": 20}
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "steps.py").write_text('"""Steps.\n\nOf a path.\n"""\n\n# a comment\n' + 4777 * "step = 1\n")
    (tmp_path / "top.py").write_text("top = 1\n")
    assert Size.of(tmp_path).faults(budgets) == []
    (tmp_path / "run" / "more.py").write_text(200 * "step = 1\n")
    assert Size.of(tmp_path).faults(budgets) == [
        "run has 4,977 lines of code, 100 above its budget of 4,877; remove some, or raise it and say in the commit why"
    ]


def test_a_budget_that_holds_nothing_back_is_lowered(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "steps.py").write_text(100 * "step = 1\n")
    budgets = {"rooms": {"run": 109, "store": 10}, "used_once": 1.0, "p90_lines": 20}
    assert Size.of(tmp_path).faults(budgets) == [
        "run has only 100 lines of code; lower its budget of 109 to 104",
        "store has only 0 lines of code; lower its budget of 10 to 0",
    ]


def test_pieces_into_which_functions_are_cut_are_counted_whatever_they_are_called(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text('__all__ = ["exported"]\n')
    (tmp_path / "steps.py").write_text(
        "def exported(): return piece() + twice() + twice()\n"
        "def piece(): return 1\n"
        "def twice():\n    '''Two\n    lines.'''\n    return 2\n"
        "@register\ndef decorated(): return exported()\n"
    )
    size = Size.of(tmp_path)
    assert (size.used_once, size.p90_lines, size.rooms) == (1 / 3, 2, {"(top)": 7})
    assert size.faults({"rooms": {"(top)": 7}, "used_once": 0.25, "p90_lines": 1}) == [
        "33.33% of all functions are used once, more than 25.00%; put one where it is used unless its name is worth it",
        "a tenth of all functions has more than 1 lines (2)",
    ]


def parameter_count(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many a call can name; `*args` and `**named` count as one each."""
    given = function.args
    named = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in named if name not in ("self", "cls")]) + bool(given.vararg) + bool(given.kwarg)


def test_no_function_has_many_parameters() -> None:
    crowded = [
        f"{path.relative_to(PACKAGE)}: {node.name} has {count}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (count := parameter_count(node)) > MOST_PARAMETERS
    ]
    assert crowded == []


def test_the_words_are_plain() -> None:
    """Things are reported, shown, stored, written or said: each says another thing than one word for all of them."""
    folders = [path for name in ("src", "docs") for path in (ROOT_FOLDER / name).rglob("*") if path.is_file()]
    files = [*folders, *ROOT_FOLDER.glob("*.md")]
    texts = (
        path.read_text(encoding="utf-8", errors="ignore") for path in files if path.suffix in (".py", ".md", ".txt")
    )
    assert sum(len(re.findall(r"\b_?told\b", text, re.IGNORECASE)) for text in texts) <= 5


def test_warnings_point_to_code_of_the_user() -> None:
    """`warn` finds the line; how deep a call of `warnings.warn` is changes with each helper that is moved."""
    files = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE) != Path("core/errors.py")]
    assert [path.name for path in files if "warnings.warn(" in path.read_text(encoding="utf-8")] == []


def test_every_line_that_installs_extras_can_be_pasted_into_any_shell() -> None:
    """Unquoted brackets are a pattern of file names, which zsh refuses."""
    folders = [ROOT_FOLDER / name for name in ("src", "docs", "examples", "benchmarks", "tests")]
    files = [*ROOT_FOLDER.glob("*.md"), *(path for folder in folders for path in folder.rglob("*.[pm][yd]"))]
    texts = {str(path.relative_to(ROOT_FOLDER)): path.read_text(encoding="utf-8") for path in files}
    installing = {file: re.findall(r"pip install (?:-\w+ )*('?)[\w.]+\[", text) for file, text in texts.items()}
    assert sum(map(len, installing.values())) > 20
    assert [file for file, quotes in installing.items() if "" in quotes] == []


def test_no_room_tells_kinds_of_another_apart_by_a_literal() -> None:
    modules = [(path, path.relative_to(PACKAGE).parts[0]) for path in sorted(PACKAGE.rglob("*.py"))]
    found = [
        f"{path.relative_to(PACKAGE)}:{literal.lineno}: {literal.value}"
        for path, room in modules
        for literal in find_kind_literals(path, room)
    ]
    assert found == []


def test_kinds_are_registered_in_the_rooms_that_may_name_them() -> None:
    points = tomllib.loads((ROOT_FOLDER / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    assert {name: point.split(".")[1] for name, point in points["evaluand.kinds"].items()} == HOMES
