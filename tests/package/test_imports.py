"""What importing evaluand costs and offers, and that everything registered can be found."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest

import evaluand
from evaluand import errors
from evaluand.core import errors as core_errors, registry

HEAVY = ("numpy", "pyarrow", "pydantic", "rich", "click", "yaml")
REGISTERED = [(group, name) for group in registry.GROUPS for name in registry.names(group)]


def loaded_by(statement: str) -> set[str]:
    """The modules a fresh interpreter holds after a statement."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_importing_the_package_loads_no_heavy_library() -> None:
    loaded = loaded_by("import evaluand")
    assert "evaluand" in loaded
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.parametrize("module", ["core.errors", "core.identity", "core.registry", "store.store"])
def test_modules_that_plug_ins_and_workers_start_with_stay_light(module: str) -> None:
    loaded = loaded_by(f"import evaluand.{module}")
    assert f"evaluand.{module}" in loaded
    assert loaded.isdisjoint({"numpy", "pyarrow", "pydantic"})


def test_the_version_is_the_installed_one() -> None:
    assert evaluand.__version__ == importlib.metadata.version("evaluand")


@pytest.mark.parametrize("name", evaluand.__all__)
def test_every_public_name_can_be_had_and_is_listed(name: str) -> None:
    assert getattr(evaluand, name) is not None
    assert name in dir(evaluand)


@pytest.mark.parametrize("name", registry.names("metrics"))
def test_every_kind_of_metric_of_ours_is_a_public_name(name: str) -> None:
    kind = registry.find("metrics", name)
    if kind.__module__.startswith("evaluand."):
        assert getattr(evaluand, kind.__name__) is kind
        assert kind.__name__ in evaluand.__all__


def test_every_error_to_catch_is_in_the_module_of_errors_and_in_the_package() -> None:
    ours = {name for name, each in vars(core_errors).items() if isinstance(each, type) and issubclass(each, Exception)}
    assert {*errors.__all__} == ours | {"Fault"}
    assert ours <= {*evaluand.__all__}


def test_a_name_that_is_not_public_is_refused_by_name() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = evaluand.no_such_name


@pytest.mark.parametrize("group", registry.GROUPS)
def test_every_group_has_kinds(group: str) -> None:
    assert registry.names(group)


@pytest.mark.parametrize(("group", "name"), REGISTERED)
def test_a_registered_kind_bears_the_name_it_is_registered_under(group: str, name: str) -> None:
    assert registry.find(group, name).kind == name
