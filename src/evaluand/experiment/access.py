"""The access that an experiment file asks for: hosts, environment variables, programs, code and files.

Only the file is read: nothing is imported, contacted or executed. So the access of its code and programs is not
included.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import ValidationError

from evaluand.core.errors import SpecError
from evaluand.core.files.paths import is_within
from evaluand.core.redaction import redact_command
from evaluand.core.secret_hosts import permissions, refusal
from evaluand.engine.policy import TRANSIENT
from evaluand.experiment.build import CHAT, CODE_PARAMETERS, MULTIPLE_CHOICE, TOOLS
from evaluand.experiment.parsing import ValidParts
from evaluand.experiment.spec import CodeSpec, KindSpec, graded_by
from evaluand.judges.model_judge import rubric_files
from evaluand.models.endpoints import read_short_name
from evaluand.run.tasks.conversation import FILE

_LOADING = re.compile(
    r"^(LD|DYLD|PYTHON|PERL|RUBY|NODE|JAVA|_JAVA|JDK|GIT|BASH|ENV$|SHELLOPTS$|PS4$|R_|LUA)|(PATH|LIB|OPT|OPTS|OPTIONS|STARTUP|INIT)$"
)
"""Names of variables with which programs load code, or with which shells and interpreters find it."""
_VARIABLE = re.compile(r"\$\{(\w+)\}")


class Contact(NamedTuple):
    """A host that is contacted.

    Attributes:
        where: the place in the file, such as `tasks.bot`.
        host: scheme, name and port.
        variables: the environment variables that the file sends there.
        refused: the variables that the user has not allowed, with the reason.
    """

    where: str
    host: str
    variables: list[str]
    refused: dict[str, str]


class Program(NamedTuple):
    """A program that is executed; it receives all environment variables.

    Attributes:
        where: the place in the file.
        command: the program and its arguments, with `***` in place of credentials.
        folder: the folder in which it runs, as the file writes it.
        environment: the names of the variables that the file sets for it.
        loading: those of them that decide which code is executed, such as PATH, with their values.
    """

    where: str
    command: list[str]
    folder: str
    environment: list[str]
    loading: dict[str, str]


class Code(NamedTuple):
    """A file or module of code that is imported, which executes it, with the places that name it."""

    module: str
    where: list[str]


class Reading(NamedTuple):
    """A file that is read, whose rows a task may send to a host.

    Attributes:
        where: the place in the file.
        path: as the file writes it.
        outside: whether it is outside of the folder of the experiment file.
    """

    where: str
    path: str
    outside: bool


class Access(NamedTuple):
    """The access that an experiment file asks for."""

    hosts: list[Contact]
    programs: list[Program]
    code: list[Code]
    files: list[Reading]


def read_access(spec: ValidParts, folder: Path) -> Access:
    """The access that the valid parts of an experiment file ask for; its invalid parts are not used.

    Args:
        folder: the folder of the file.
    """
    entries = [*_entries(spec)]
    kinds = [(where, entry) for where, entry in entries if isinstance(entry, KindSpec)]
    modules: dict[str, list[str]] = {}
    for where, reference in _references(spec, entries, folder):
        places = modules.setdefault(reference.rpartition(":")[0], [])
        if where not in places:
            places.append(where)
    return Access(
        [contact for where, entry in kinds for contact in _contacts(where, entry.parameters)],
        [_program(where, entry.parameters) for where, entry in kinds if entry.kind == "program"],
        [Code(module, places) for module, places in modules.items()],
        [Reading(where, path, not is_within(folder / path, folder)) for where, path in _paths(spec, entries, folder)],
    )


def _entries(spec: ValidParts) -> Iterator[tuple[str, KindSpec | CodeSpec]]:
    """Every entry that is a kind or code, with its place, including the scorers of judges."""
    for group, entries in (("tasks", spec.tasks), ("scorers", spec.scorers), ("metrics", spec.metrics)):
        for name, entry in entries.items():
            yield f"{group}.{name}", entry
    for number, matches in spec.matches.items():
        where = f"matches.{number}.judge" if len(spec.matches) > 1 else "matches.judge"
        yield where, matches.judge
        with suppress(ValidationError):
            if (graded := graded_by(matches.judge)) is not None:
                yield where, graded


def _paths(spec: ValidParts, entries: list[tuple[str, KindSpec | CodeSpec]], folder: Path) -> Iterator[tuple[str, str]]:
    """The files of examples, schemas, prices, recorded outputs, documents and whatever else an entry depends on."""
    if spec.dataset is not None:
        yield "dataset", spec.dataset.path
    if spec.prices is not None:
        yield "prices", spec.prices
    yield from ((where, schema) for where, schema in _schemas(spec, entries) if not _is_code(schema, folder))
    for where, kind in entries:
        if isinstance(kind, CodeSpec):
            yield from ((where, path) for path in kind.files)
            continue
        split, files = (kind.parameters.get(name) for name in ("split", "files"))
        written = [kind.parameters.get("path"), split.get("file") if isinstance(split, Mapping) else None]
        written += files if isinstance(files, list) else []
        yield from ((where, path) for path in written if isinstance(path, str))
        yield from ((where, path) for path in rubric_files(kind.parameters))
        if kind.kind in (CHAT, MULTIPLE_CHOICE):
            yield from ((where, path) for path in _files_of_chat(kind.parameters))


def _files_of_chat(parameters: Mapping[str, Any]) -> Iterator[str]:
    """The files of prompts and of examples."""
    messages = parameters.get("messages")
    texts = [message.get("content") for message in messages or () if isinstance(message, Mapping)]
    for text in (parameters.get("system"), *texts, parameters.get("prompt")):
        if isinstance(text, str) and text.startswith(FILE):
            yield text.removeprefix(FILE).strip()
    examples = parameters.get("examples")
    if isinstance(examples, Mapping) and isinstance(path := examples.get("path"), str):
        yield path


def _contacts(where: str, value: Any) -> Iterator[Contact]:
    """The hosts in the parameters of a kind, wherever they have a `url`, or name a model or several `models`."""
    if isinstance(value, list):
        for item in value:
            yield from _contacts(where, item)
    if not isinstance(value, Mapping):
        return
    url, models = value.get("url"), value.get("models")
    if isinstance(url, str) and "://" in url:
        yield _contact(where, url, value)
    else:
        yield from _contacts_of_model(where, value.get("model"), value)
    for model in models.values() if isinstance(models, Mapping) else models if isinstance(models, list) else ():
        yield from _contacts_of_model(where, model, {})
    for item in value.values():
        yield from _contacts(where, item)


def _contacts_of_model(where: str, model: Any, settings: Mapping[str, Any]) -> Iterator[Contact]:
    """The host of a model that is named by a text."""
    if isinstance(model, str):
        with suppress(SpecError):  # not the short name of a model
            found = read_short_name(model)
            yield _contact(where, found["url"], {**found, **settings})


def _contact(where: str, url: str, parameters: Mapping[str, Any]) -> Contact:
    headers = parameters.get("headers")
    texts = [url, *(headers.values() if isinstance(headers, Mapping) else ())]
    names = [name for text in texts if isinstance(text, str) for name in _VARIABLE.findall(text)]
    if isinstance(key := parameters.get("api_key"), str):
        names.append(key)
    variables = sorted(set(names))
    try:
        parts = urlsplit(url)
        host = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        allowed = permissions() if variables else []
        refused = {name: reason for name in variables if (reason := refusal(name, url, allowed))}
    except ValueError:  # no URL, which is a fault of the file
        return Contact(where, url.partition("?")[0], variables, {})
    return Contact(where, host, variables, refused)


def _program(where: str, parameters: Mapping[str, Any]) -> Program:
    command, environment = parameters.get("command"), parameters.get("env")
    try:
        words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command or ()]
    except (TypeError, ValueError):
        words = [str(command)]
    values = {str(name): str(value) for name, value in environment.items()} if isinstance(environment, Mapping) else {}
    loading = {name: values[name] for name in sorted(values) if _LOADING.search(name)}
    folder = str(parameters.get("folder", "")) or "."
    return Program(where, redact_command(words), folder, sorted(values), loading)


def _references(
    spec: ValidParts, entries: list[tuple[str, KindSpec | CodeSpec]], folder: Path
) -> Iterator[tuple[str, str]]:
    """Every name of code, `file.py:name` or `module:name`, with its place."""
    yield from ((where, entry.function) for where, entry in entries if isinstance(entry, CodeSpec))
    for where, kind in entries:
        if not isinstance(kind, KindSpec):
            continue
        tools = kind.parameters.get(TOOLS) if kind.kind == CHAT else None
        yield from ((where, name) for name in tools or () if isinstance(name, str) and ":" in name)
        for parameter in CODE_PARAMETERS.get(kind.kind, ()):
            if isinstance(text := kind.parameters.get(parameter), str) and ":" in text:
                yield where, text
    yield from ((where, schema) for where, schema in _schemas(spec, entries) if _is_code(schema, folder))
    for name in spec.run.transient:
        if "." in name and name not in TRANSIENT:
            yield "run.transient", f"{name.rpartition('.')[0]}:{name}"


def _schemas(spec: ValidParts, entries: list[tuple[str, KindSpec | CodeSpec]]) -> Iterator[tuple[str, str]]:
    """Every schema that a text names, a file or code."""
    found: list[tuple[str, Any]] = []
    for where, entry in entries:
        found.append((where, getattr(entry, "output_schema", None)))
        found += [(where, _schema_of(getattr(entry, key, None))) for key in ("view", "expected_view")]
        if isinstance(entry, KindSpec):
            found += [(where, entry.parameters.get(key)) for key in ("output_schema", "response_schema")]
    if spec.dataset is not None:
        views = [_schema_of(view) for view in spec.dataset.views.values()]
        found += [("dataset", schema) for schema in (spec.dataset.schema_, *views)]
    yield from dict.fromkeys((where, schema) for where, schema in found if isinstance(schema, str))


def _is_code(schema: str, folder: Path) -> bool:
    return bool(schema.rpartition(":")[0]) and not (folder / schema).exists()


def _schema_of(view: Any) -> Any:
    return view.get("schema") if isinstance(view, Mapping) else None
