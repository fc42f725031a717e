"""Inference services: a model behind an HTTP endpoint, with the adapters that lead to it and from it.

    example's input ─ client_pipeline ─ input_pipeline ─▶ service ─ output_pipeline ─ output_schema ─▶ responses

A service is a view of a model: one model may be behind several that differ in their pipelines. These are part of what
is evaluated, so they are part of the identity; where and how the service is reached is not. What answers cannot be
seen from here, so a service is pinned by nothing but the declared `model` and `version`.
"""

import datetime as dt
import json
import re
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Annotated, Any, Literal

from evaluand.core import identity
from evaluand.core.errors import (
    ParameterError,
    Skipped,
    SpecError,
    TaskError,
    kind_of,
    plural,
    pluralize,
    with_article,
)
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.key_columns import RESPONSE_INDEX
from evaluand.core.parameters import Within
from evaluand.core.redaction import has_token
from evaluand.core.secret_hosts import is_of_file, mark_origin
from evaluand.data.adapters.base.adapter import INDEX, UPLOAD, Pipeline, create_adapter
from evaluand.data.adapters.base.options import AdapterError, AdapterSpecError
from evaluand.data.dataset import Dataset
from evaluand.data.schema.values import ValueSchema
from evaluand.engine.form import FilePart, encode_form
from evaluand.engine.http import BadAnswer, BadRequest, HttpClient
from evaluand.run.parameters import Place, check_parameters
from evaluand.run.task import Candidates, Request, Task, is_coroutine_function
from evaluand.run.tasks.batches import Batches, BatchRow
from evaluand.trace.spans import TaskSpan

Steps = Sequence[Mapping[str, Any]] | Mapping[str, Any]

INPUT = "input"  # the field for an input that is not an object
_LOGGED = 2000  # characters of a request or an answer that a trace keeps
_LISTED, _LONGEST_NAME = 5, 40  # fields of an answer in a message, and characters of each
_PIPELINES = ("client_pipeline", "input_pipeline", "output_pipeline")


@dataclass(frozen=True, kw_only=True)
class _Service(Task[Any, Any]):
    """What a service is, wherever it answers: how examples become requests, and answers responses."""

    model: str | None = None
    version: str | None = None
    client_pipeline: Steps = ()
    input_pipeline: Steps = ()
    output_pipeline: Steps = ()
    output_schema: Any = None
    items: bool = False

    kind = "service"
    behaviour = 1
    checks_outputs = True

    def __post_init__(self) -> None:
        check_parameters(self, self._faults())
        for name, pipeline in self._pipelines.items():  # later changes of the arguments have no effect
            object.__setattr__(self, name, pipeline.spec)

    @property
    def name(self) -> str:
        return self.model or self._address

    @property
    def reads(self) -> tuple[str, ...]:
        return ("index",) if self._sends_index else ()

    def identify(self) -> Identity:
        spec: dict[str, Any] = {"kind": self.kind, "behaviour": self.behaviour, "model": self.model}
        spec |= {name: pipeline.spec for name, pipeline in self._pipelines.items()}
        spec |= {"items": self.items, **self._handling}
        if self.output_schema is not None:
            spec["output_schema"] = self._schema.spec
        parts = {name: identity.digest(spec[name]).hex() for name in (*_PIPELINES, "output_schema") if name in spec}
        parts |= {"address": self._address, "model": str(self.model), "version": str(self.version)}
        return self._answering(Identity(spec, parts=parts))

    def do_run(self, input: Any, task_span: TaskSpan) -> Any:
        return self.call(Request(input, task_span, 0, "0", 0, identity.digest(input), 0))

    @property
    @abstractmethod
    def _address(self) -> str:
        """The service's address in messages."""

    @abstractmethod
    def _answering(self, own: Identity) -> Identity:
        """The identity with what answers."""

    @property
    def _handling(self) -> Mapping[str, Any]:
        """The settings for invalid answers that change the responses."""
        return {}

    @property
    def _sends_index(self) -> bool:
        return self._names_index

    def _faults(self) -> Iterator[tuple[Place, str]]:
        for name in _PIPELINES:
            yield from _faults_of(name, getattr(self, name))
            if has_token(getattr(self, name)):
                yield (name,), "holds a token, which would be stored; send it in a header, as ${NAME} of a variable"
        if self.version is not None and self.model is None:
            yield ("version",), "is the version of no model; name what answers as its model"
        if self.output_schema is not None:
            try:
                _ = self._schema
            except SpecError as error:
                yield ("output_schema",), str(error)

    @cached_property
    def _schema(self) -> ValueSchema:
        """The schema of an item."""
        return ValueSchema.of(self.output_schema)

    @cached_property
    def _pipelines(self) -> dict[str, Pipeline]:
        return {name: Pipeline.of(getattr(self, name)) for name in _PIPELINES}

    @cached_property
    def _names_index(self) -> bool:
        """Whether a request pipeline refers to the example's `_index_`; otherwise it is never sent."""
        return any(_names_index(self._pipelines[name].spec) for name in ("client_pipeline", "input_pipeline"))

    def _request_row(self, request: Request) -> dict[str, Any]:
        """The request to the service: one object."""
        row = dict(request.input) if isinstance(request.input, Mapping) else {INPUT: request.input}
        if self._names_index:
            row[INDEX] = request.index
        for name in ("client_pipeline", "input_pipeline"):
            try:
                made = self._pipelines[name].apply(row)
            except AdapterError as error:
                raise TaskError(f"{name}: {error}", code=name) from None
            if len(made) != 1 or not isinstance(made[0], Mapping):
                what = f"{len(made)} rows" if len(made) != 1 else kind_of(made[0])
                raise TaskError(f"{name}: made {what} of the input; a request is one object", code=name)
            row = dict(made[0])
        if self.client_pipeline or self.input_pipeline:  # else the input tells it
            self._log(request, "request", row)
        return row

    def _output(self, answer: Any, request: Request) -> Any:
        """The responses in an answer: None, one or alternatives, of items where the task declares them."""
        try:
            return self._read(answer, request)
        except BadAnswer:
            self._log(request, "answer", answer)
            raise

    def _log(self, request: Request, name: str, value: Any) -> None:
        """Log the beginning of a request or an answer, without secrets."""
        try:
            text = self._hidden(json.dumps(value, ensure_ascii=False, default=_brief))
        except (TypeError, ValueError, RecursionError):
            return  # invalid JSON is reported when it is sent
        request.task_span.log(name, text if len(text) <= _LOGGED else f"{text[:_LOGGED]}…")

    def _hidden(self, text: str) -> str:
        return text

    def _read(self, answer: Any, request: Request) -> Any:
        if answer is None:
            return None
        rows = answer if isinstance(answer, list) else [answer]
        wrong = [row for row in rows if not isinstance(row, dict)]
        if wrong:
            found = f"{'holds' if isinstance(answer, list) else 'is'} {kind_of(wrong[0])}"
            raise BadAnswer(f"the answer {found}; it must be a JSON object, or a list of objects", code="form")
        items = [item for row in rows for item in self._items(row)]
        numbered = [self._numbered(place, item, request.index) for place, item in enumerate(items)]
        self._check_fit([item for _, item in numbered])
        return self._responses(numbered, request.task_span)

    def _items(self, row: dict[str, Any]) -> Sequence[Any]:
        """What the output pipeline makes of an object of the answer."""
        try:
            return self._pipelines["output_pipeline"].apply(row)
        except AdapterError as error:
            hint = f"the answer has {_list_fields(row)}: change output_pipeline so that it fits"
            raise BadAnswer(f"output_pipeline: {error}; {hint}", code="output_pipeline") from None

    def _numbered(self, place: int, item: Any, index: int) -> tuple[int | None, Any]:
        """The number of the response that an item belongs to, where it says so, and the rest of it."""
        if not isinstance(item, Mapping):
            return None, item
        item = dict(item)
        answered = item.pop(INDEX, index)
        if type(answered) is not int or answered != index:
            raise BadAnswer(f"answered {INDEX} {answered!r}, not {index}", code="foreign")
        number = item.pop(RESPONSE_INDEX, None)
        if number is not None and (type(number) is not int or number < 0):
            raise BadAnswer(f"item {place}: {RESPONSE_INDEX} is {number!r}, not an integer", code="form")
        return number, item

    def _check_fit(self, items: list[Any]) -> None:
        if self.output_schema is None:
            return
        for fault in self._schema.json_faults(items):
            message = f"{fault.path} {fault.message}".replace("item", f"item {fault.row}", 1)
            raise BadAnswer(f"{message}: it does not fit the output schema", code="schema")

    def _responses(self, items: list[tuple[int | None, Any]], task_span: TaskSpan) -> Any:
        numbered = [number for number, _ in items if number is not None]
        if numbered and len(numbered) < len(items):
            raise BadAnswer(f"only {len(numbered)} of {len(items)} items have a {RESPONSE_INDEX}", code="form")
        if not numbered:
            values = [value for _, value in items]
            return values if self.items else Candidates(values)
        groups: dict[int, list[Any]] = {number: [] for number in sorted(set(numbered))}
        for number, value in items:
            assert number is not None
            groups[number].append(value)
        if (indexes := list(groups)) != list(range(len(indexes))):
            task_span.log("given_response_indexes", indexes)
        if self.items:
            return Candidates(list(groups.values()))
        several = [number for number, values in groups.items() if len(values) > 1]
        if several:
            repeated = f"{RESPONSE_INDEX} {several[0]} occurs {len(groups[several[0]])} times"
            raise BadAnswer(f"{repeated}; set items: true if several items are one response", code="form")
        return Candidates([value for (value,) in groups.values()])


@dataclass(frozen=True)
class ServiceTask(_Service):
    """Asks an inference service over HTTP.

    The request is the example's input as a JSON object, after `client_pipeline` and `input_pipeline`; an input that is
    no object is sent as `{"input": …}`. Where one of them names `_index_`, the example's is there. A pipeline that ends
    in `FileUpload` sends `multipart/form-data`.

    The answer is a JSON object or a list of objects, from which `output_pipeline` makes items. Each item is a response,
    best first, or with `items` they are one response together; `_response_index_`, where an adapter gives it, says
    which response an item belongs to, and in which order they come; they are numbered anew from 0, and where that
    changes a number, those given are logged as `given_response_indexes`. `null` is no answer, and so is `[]` without
    `items`, with which it is a response that has none. An item that does not fit `output_schema` makes a failed row.

    Failures: transient ones (no connection, a lost connection, a timeout, 408, 425, 429, 5xx) are retried as the run's
    `retries` (by default 4) and `backoff` say, not before `Retry-After`. Other 4xx are bad requests.

    A run's `timeout` and `total_timeout` hold for requests. They do not interrupt an adapter, but a pattern gives up on
    an answer after five seconds of processor time.

    Args:
        url: the endpoint. It may change without the results being others: see `version`. A secret in its path or query
            is written as `${NAME}` of an environment variable, as in headers.
        model: what answers there.
        version: stands for the model's weights, settings and whatever else changes its answers; raise it when one does.
            Without, the results are never reused by themselves.
        method: of the request.
        headers: of the request. A secret is written as `${NAME}` of an environment variable and stored nowhere. If a
            file names the variable, it is sent only to hosts that `evaluand secrets` allows.
        client_pipeline: adapters before those of the service, for what the service must not see.
        input_pipeline: adapters from the dataset to what the service takes.
        output_pipeline: adapters from what the service gives to responses.
        output_schema: what an item must be: a JSON Schema or the name of a schema such as `text.Text`; from Python any
            form that `ValueSchema` takes. An item may have no other fields than those.
        items: the items of an answer are one response, such as a tagger's entities.
        on_bad_request: what a bad request does: `fail` its row, `skip` its row, or `abort` the run.
        batch: ask for up to so many examples in one request: a list of objects with `_index_`, answered by such a list
            in any order. An element of it may hold several answers as `responses`; other fields are ignored.
        on_duplicate: what a second output for an `_index_` does: `deduplicate` (the first counts) or `fail` its row.
        on_missing: what a missing output does: `fail` its row, or `ignore`, which is no answer.
        on_foreign: what an output for an unknown `_index_`, or without one, does: `fail` the row whose request has it
            (its batch is sent again in halves to find that row), or `ignore`.

    Raises:
        ParameterError: a parameter cannot be as it is; all of them at once.

    Example:
        >>> rename = {"kind": "Rename", "configuration": {"text": "prompt"}}
        >>> bot = ServiceTask("https://models.example/answer", model="bot", version="3", input_pipeline=[rename])
        >>> bot.identify().pinned
        True
    """

    url: str = field(repr=False)
    _: KW_ONLY
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    on_bad_request: Literal["fail", "skip", "abort"] = "fail"
    batch: Annotated[int, Within(1)] | None = None
    on_duplicate: Literal["deduplicate", "fail"] = "deduplicate"
    on_missing: Literal["fail", "ignore"] = "fail"
    on_foreign: Literal["fail", "ignore"] = "fail"

    transient = ("TaskTimeout",)
    retries = 4
    __pydantic_config__ = {"coerce_numbers_to_str": True}  # noqa: RUF012 - in YAML, `3` is a number

    def __post_init__(self) -> None:
        headers = {name: mark_origin(value) for name, value in self.headers.items()}
        object.__setattr__(self, "headers", headers)
        object.__setattr__(self, "url", mark_origin(self.url))
        super().__post_init__()

    def prepare(self, dataset: Dataset) -> None:
        """Raises a SpecError if the service cannot be asked.

        A variable is not set or must not be sent to this host, or no HTTP client is installed.
        """
        self._exchange.check()

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._exchange.close()

    @property
    def is_async(self) -> bool:
        return True

    async def call(self, request: Request) -> Any:
        row = self._request_row(request)
        try:
            if self.batch is None:
                upload = self._pipelines["input_pipeline"].last
                answer = await self._exchange.ask(*_form_body(row[UPLOAD]) if upload else (_write_json(row),))
            else:
                element = _write_json({**row, INDEX: request.index})
                asked = BatchRow(request.index, request.replication, element, request.pace)
                answer = await self._batches.ask(asked)
                for name, count in asked.notes.items():
                    request.task_span.log(name, count)
        except BadRequest as error:
            if self.on_bad_request == "skip":
                raise Skipped(str(error), code=error.code) from None
            error.stops = self.on_bad_request == "abort"
            raise
        self._exchange.check_output(answer)
        return self._output(answer, request)

    @property
    def _address(self) -> str:
        return self.url.partition("?")[0]

    @property
    def _sends_index(self) -> bool:
        return self._names_index or self.batch is not None

    @property
    def _handling(self) -> Mapping[str, Any]:
        usual = {"on_bad_request": "fail"}
        if self.batch is not None:
            usual |= {"on_duplicate": "deduplicate", "on_missing": "fail", "on_foreign": "fail"}
        chosen = {name: getattr(self, name) for name in usual}
        return {name: value for name, value in chosen.items() if value not in (usual[name], "abort")}

    def _answering(self, own: Identity) -> Identity:
        if self.version is not None:
            return own.versioned(self.version)
        why = f"{self.name}: what answers at {self._address} cannot be seen from here; declare `model` and `version`"
        return replace(own, pinned=False, unpinned=(f"{why} to pin it",))

    def _faults(self) -> Iterator[tuple[Place, str]]:
        yield from super()._faults()
        try:
            _ = self._exchange
        except ParameterError as error:
            yield from error.faults
        with suppress(AdapterSpecError):  # reported above
            if self.batch is not None and Pipeline.of(self.input_pipeline).last:
                yield ("batch",), "FileUpload sends one file in a request; leave batch out"

    @cached_property
    def _exchange(self) -> HttpClient:
        of_file = is_of_file(self.url, *self.headers.values())
        return HttpClient(self.url, self.method, self.headers, of_file=of_file)

    @cached_property
    def _batches(self) -> Batches:
        stops = self.on_bad_request == "abort"
        return Batches(self.batch or 1, self._exchange.ask, self.on_duplicate, self.on_missing, self.on_foreign, stops)

    def _hidden(self, text: str) -> str:
        return self._exchange.hide_secrets(text)


@dataclass(frozen=True)
class LocalServiceTask(_Service):
    """A service that is a function in Python: the same pipelines, schema and reading of answers, without a network.

    What goes in and comes out passes through JSON, so a function leaves the same responses as a server that calls it.

    Args:
        function: takes the request, a dictionary, and gives a dictionary, a list of such, or None; it may be async.
        model: as of a `ServiceTask`, like all the rest. Without a `version` the function's fingerprint pins it.

    Example:
        >>> from evaluand.run.runner import Runner
        >>> shout = LocalServiceTask(lambda asked: {"text": asked["input"].upper()})
        >>> [r.responses for r in Runner().run(shout, Dataset.from_rows([{"input": "a"}]))]
        [[{'text': 'A'}]]
    """

    function: Callable[[dict[str, Any]], Any]

    @property
    def is_async(self) -> bool:
        return is_coroutine_function(self.function)

    def call(self, request: Request) -> Any:
        asked = self._request_row(request)
        row = asked if self._pipelines["input_pipeline"].last else json.loads(_write_json(asked))
        if self.is_async:
            return self._awaited(row, request)
        return self._output(self._through_json(self.function(row)), request)

    async def _awaited(self, row: dict[str, Any], request: Request) -> Any:
        return self._output(self._through_json(await self.function(row)), request)

    def _through_json(self, answer: Any) -> Any:
        try:
            return json.loads(json.dumps(answer))
        except (TypeError, ValueError, RecursionError) as error:
            raise BadAnswer(f"the answer is not JSON: {error}", code="json") from None

    @property
    def _address(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def _answering(self, own: Identity) -> Identity:
        return own.joined({"code": code_identity("function", self.function, version=self.version)})


def _names_index(part: Any) -> bool:
    """Whether a configuration refers to `_index_` as a key, the name of a field or a step of a path."""
    if isinstance(part, Mapping):
        return any(_names_index(each) for pair in part.items() for each in pair)
    if isinstance(part, list | tuple):
        return any(map(_names_index, part))
    return isinstance(part, str) and INDEX in re.split(r"[^\w@-]+" if part.startswith("$") else r"[.\[\]'\"]", part)


def _form_body(upload: Mapping[str, Any]) -> tuple[bytes, str]:
    """The body of a request with one file, and its content type."""
    file = FilePart(upload["name"], upload["filename"], upload["contentType"], upload["content"])
    return encode_form(upload["formFields"], file)


def _write_json(row: Any) -> bytes:
    try:
        return json.dumps(
            row, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_to_json_text
        ).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise TaskError(f"the request cannot be written as JSON: {error}", code="request") from None


def _list_fields(row: Mapping[str, Any]) -> str:
    names = [name[:_LONGEST_NAME] for name in islice(row, _LISTED)]
    more = f" and {plural(len(row) - len(names), 'more field', 'more fields')}" if len(row) > len(names) else ""
    return f"{pluralize(len(row), 'the field', 'the fields')} {', '.join(names)}{more}" if names else "no fields"


def _brief(value: Any) -> str:
    return f"{len(value):,} bytes" if isinstance(value, bytes) else _to_json_text(value)


def _to_json_text(value: Any) -> str:
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    raise TypeError(f"{with_article(type(value).__name__)} has no form in it; make text of it in the input pipeline")


def _faults_of(name: str, steps: Any) -> Iterator[tuple[Place, str]]:
    """What is wrong with a pipeline, step by step."""
    listed = isinstance(steps, list | tuple)
    for number, step in enumerate(steps if listed else ()):
        try:
            create_adapter(step)
        except AdapterSpecError as error:
            yield from (((name, number), line) for line in str(error).split("\n"))
            steps = ()
    try:
        pipeline = Pipeline.of(steps)
    except AdapterSpecError as error:
        yield from (((name,), line) for line in str(error).split("\n"))
        return
    if pipeline.on_error != "abort":
        why = f"onError is {pipeline.on_error!r}; here a row that cannot be transformed is always a failed row"
        yield (name,), why
    last = [adapter.kind for adapter in pipeline.adapters if adapter.last]
    if last and name != "input_pipeline":
        yield (name,), f"{last[0]} is allowed only at the end of input_pipeline"
