"""The tables of the path: their key and their Arrow schemas, in one place.

    examples     one row per example: `_index_`, `_digest_` and the native columns, with their roles in the schema
    responses    one row per example and replication: the response of the task, or its error
    spans        the steps inside the calls
    inputs       the files that the calls of a run opened; `inputs/NAME` those of a scorer
    scores/NAME  one row per response (and target): the grade of a scorer
    metrics      one row per metric and group: the values
    disparities  one row per metric, grouping and kind of disparity
    worst_groups one row per metric and group that looked worse than all rows
    curves       points of ROC and other curves, and cells of confusion matrices, for reports
    pairs        one row per two evaluations compared by a metric; `ranking` and `flips` belong to it
    matches      one row per two responses to an example that a judge compared, and the order in which it saw them
    ratings      one row per rated system; `win_rates`, `differences`, `parameters` and `bias` belong to it
    measures     one row per measure of a judge; `confusion`, `calibration` and `misses` belong to it

The key of a row is `_index_` (the example), `replication` (the repeat), `_response_index_` (one of several answers) and
`target` (one of several expected values). A text column of canonical JSON has `evaluand: json` in its field's metadata.
"""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final, Protocol

import pyarrow as pa

from evaluand.core.errors import SpecError
from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.store.statuses import (
    ABSTAINED as ABSTAINED,
    COMPLETED as COMPLETED,
    FAILED as FAILED,
    RESPONSE_STATUSES as RESPONSE_STATUSES,
    SCORE_STATUSES as SCORE_STATUSES,
    SCORED as SCORED,
    SKIPPED as SKIPPED,
)
from evaluand.store.store import Rows as Rows

BATCH_ROWS: Final = 4096
BATCH_CHARACTERS: Final = 16 << 20  # of text in a batch, so that long texts do not fill the memory

SHARD_ROWS: Final = 65_536
"""Aggregation shards begin at multiples of this `_index_`, so any number of workers gives the same bytes."""

_JSON: Final = {"evaluand": "json"}


def json_field(name: str) -> pa.Field:
    """A text field of canonical JSON."""
    return pa.field(name, pa.string(), metadata=_JSON)


def is_json(field: pa.Field) -> bool:
    """Whether a field is canonical JSON."""
    return bool(field.metadata) and field.metadata.get(b"evaluand") == b"json"


_INT32, _INT, _REAL, _TEXT, _BOOL = pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.bool_()


def _table(*columns: Iterable[pa.Field]) -> pa.Schema:
    return pa.schema(chain.from_iterable(columns))


def _required(kind: pa.DataType, *names: str) -> list[pa.Field]:
    """Columns without nulls."""
    return [pa.field(name, kind, nullable=False) for name in names]


def _optional(kind: pa.DataType, *names: str) -> list[pa.Field]:
    return [pa.field(name, kind) for name in names]


def _json(*names: str) -> list[pa.Field]:
    return [*map(json_field, names)]


RESPONSE_ITEM: Final = pa.struct([pa.field(RESPONSE_INDEX, pa.int64()), json_field("value")])

ERROR: Final = pa.struct([(name, pa.string()) for name in ("type", "message", "code", "place")])

_COST: Final = {"cost": pa.float64(), "currency": pa.string()}

USAGE: Final = pa.struct(
    dict.fromkeys(("requests", "failed", "cached", "input_tokens", "output_tokens"), pa.int64())
    | _COST
    | {"model": pa.string(), "costs": pa.list_(pa.struct(_COST))}
    | dict.fromkeys(("cached_input_tokens", "stored_input_tokens", "reasoning_tokens"), pa.int64())
)
"""What a call used. `failed` requests had no reply, `cached` replies needed no request. `cached_input_tokens` and
`stored_input_tokens` are part of the input, `reasoning_tokens` of the output. `cost` is null if it is unknown for one
of the requests; `costs` holds those in several currencies, which are never added."""

RESPONSES: Final = _table(
    _required(_INT, INDEX),
    _required(_INT32, "replication"),
    _optional(_INT32, "fold"),
    _required(pa.binary(16), "digest"),
    _required(_TEXT, "status"),
    _optional(ERROR, "error"),
    _optional(pa.list_(RESPONSE_ITEM), "responses"),
    _required(_INT32, "n_responses", "attempts"),
    _optional(USAGE, "usage"),
    _optional(pa.timestamp("us", "UTC"), "started"),
    _optional(pa.duration("us"), "duration"),
)
"""`digest` is that of the part of the example that the task sees; `responses` is null for no answer, `[]` for an empty
answer. `place` of an error is its origin in the user's code: `app.py:11 in lookup`. `started` and `duration` are null
for calls that were logged without them."""

SPANS: Final = _table(
    _required(_INT, INDEX),
    _required(_INT32, "replication", "span"),
    _optional(_INT32, "parent"),
    _required(_TEXT, "name", "kind"),
    _required(pa.duration("us"), "start"),
    _optional(pa.duration("us"), "duration"),
    _required(_TEXT, "status"),
    _json("input", "output", "attributes", "events"),
)
"""`start` counts from the row's `started`; a null `duration` is a span left open or, if it has a status, one that was
logged without times. Span 0 is the call itself."""

INPUTS: Final = _table(
    _optional(_INT32, "parent"),
    _required(_TEXT, "file", "state"),
    _required(pa.list_(pa.struct([("first", pa.int64()), ("count", pa.int64())])), "rows"),
)
"""A tree of files: each row is one file more than its `parent` (the number of a row above; null where it is the first),
so that many answers share what they have in common. `rows` are the answers made with exactly these files: ranges of
places in the table of responses, or of responses graded. `file` is relative to the folder of the code, `./` to the
current folder, and ends in `/` where a folder was listed. `state` is a digest of the content, or `absent`,
`unreadable`, `changed`."""

_GROUP: Final = pa.map_(pa.string(), pa.string())

_MEASURED: Final = (
    *_required(_INT32, "evaluation"),
    *_required(_TEXT, "scorer", "metric", "signature", "run_digest"),
    *_optional(_TEXT, "target"),
)

METRICS: Final = _table(
    _MEASURED,
    _required(_GROUP, "by"),
    _optional(_REAL, "value"),
    _json("data"),
    _optional(_TEXT, "reason"),
    _optional(_REAL, "low", "high", "worst", "best"),
    _required(_INT, "n"),
    _required(_INT, *(f"n_{status}" for status in SCORE_STATUSES)),
)
"""`evaluation` is the number of the aggregated evaluation, from 0; `run_digest` is that of its run."""

_RATED: Final = pa.struct(
    [
        *_optional(_TEXT, "metric"),
        *_optional(_GROUP, "by"),
        *_optional(_REAL, "value", "low", "high", "n"),
        *_optional(_BOOL, "judged"),
        *_optional(_REAL, "shrunk_value", "shrunk_low", "shrunk_high"),
    ]
)
"""A group with its raw and its shrunk value, and whether it is large enough to be judged."""

DISPARITIES: Final = _table(
    _MEASURED,
    _required(pa.list_(pa.string()), "over"),
    _required(_TEXT, "disparity"),
    _optional(_REAL, "value", "low", "high"),
    _optional(_TEXT, "reason"),
    _optional(_GROUP, "lowest", "highest"),
    _required(_INT, "n_groups"),
    _required(pa.list_(_GROUP), "small", "undefined"),
    _optional(_TEXT, "decided_by"),
    _optional(_GROUP, "reference", "other", "given"),
    _optional(_INT, "at_once"),
    _optional(pa.list_(_GROUP), "unjudged"),
    _optional(pa.list_(_RATED), "groups"),
    _optional(_REAL, "family_low", "family_high"),
    _optional(_INT, "family_size"),
    _optional(_TEXT, "family_method"),
    _optional(_BOOL, "found"),
)
"""The disparities of groups; `over` are the attributes that define the groups, and `decided_by` is, of the metrics of a
criterion, the one with this disparity. `reference` is the group to which others are compared, `other` that of a pair,
`given` the stratum, `at_once` the number of intervals that hold at the same time. The ends of `family` allow for all
`family_size` disparities of a system, and `found` says whether they show one. These are null in earlier stores."""

WORST_GROUPS: Final = _table(
    _MEASURED,
    _optional(_GROUP, "by"),
    _optional(_REAL, "found", "value", "low", "high"),
    _required(_INT, "n"),
    _optional(_REAL, "rest"),
    _required(_BOOL, "confirmed"),
    _required(_INT, "n_looked"),
)
"""The groups for which a metric is worst: `found` on the half of the examples by which they were chosen, and `value` on
the other; `by` is null where none looked worse. See `evaluand.aggregation.worst_groups`."""

CURVES: Final = _table(
    _MEASURED,
    _required(_GROUP, "by"),
    _required(_TEXT, "curve"),
    _optional(_TEXT, "part", "label"),
    _required(_REAL, "x", "y"),
    _optional(_REAL, "low", "high", "threshold"),
    _required(_REAL, "n"),
)
"""The points of curves; see `evaluand.metrics.base.curves`. `part` is the class of a curve, in a confusion matrix the
truth; `label` is the prediction in a confusion matrix; `n` is a number of rows, or their weight."""

PAIRS: Final = _table(
    _required(_TEXT, "scorer", "metric", "signature"),
    _optional(_TEXT, "direction"),
    _required(_BOOL, "share"),
    _optional(_TEXT, "target"),
    _optional(_GROUP, "by"),
    _optional(_TEXT, "family"),
    _required(_INT32, "a", "b"),
    _required(_INT, "n", "n_used", "n_a_missing", "n_b_missing", "n_skipped", "n_only_a", "n_only_b"),
    _required(pa.list_(pa.string()), "only_a", "only_b"),
    _optional(_INT, "clusters"),
    _required(_BOOL, "binary"),
    _optional(_REAL, "value_a", "value_b", "difference", "low", "high"),
    _required(_TEXT, "interval"),
    _optional(_REAL, "worst", "best", "p"),
    _required(_TEXT, "test"),
    _optional(_REAL, "p_permutation"),
    _required(_TEXT, "permutation"),
    _optional(_REAL, "p_holm", "p_shaffer", "p_benjamini_hochberg"),
    _optional(_INT, "won", "tied", "lost"),
    _optional(_REAL, "effect", "detectable", "correlation", "variance_saved"),
    _optional(_TEXT, "reason"),
    _optional(_REAL, "p_interaction"),
)
"""`by` is the group of examples, null for all; `a` and `b` are the numbers of the compared evaluations, from 0 (of
prompts or models, those of the first evaluation of each); `share`: values lie between 0 and 1; `only_a` and `only_b`
are the ids of the first examples that only one side has. `family` is `primary` for a metric that decides, `groups`
for the groups of a metric, else `secondary`; p values are adjusted within it. `p_shaffer` decides where several systems
are compared, and is null where they are two. An `interval` that is `anytime` holds at all looks, and for all tests of
its family together; it has no p. `p_interaction` says whether the difference depends on the other factor.

`n` rows were asked of both, and `n_used` of them have a value on both sides; `clusters` are the independent
observations, where these are not the rows. `worst` and `best` are the difference if every missing row counted against
or for B. `test` is what `p` is of: the exchange of both systems, whose mid-p value alone is `p_permutation`, or the
interval where that ends at 0 at a larger p. Rows `won` are those in which B is better. `effect` is the odds of winning
a row that differs (`binary`), or the mean difference in standard deviations; `detectable` the smallest true difference
that as many rows detect in 80 of 100 cases; `variance_saved` the share of the variance that pairing removes."""

RANKING: Final = _table(
    _required(_TEXT, "scorer", "signature"),
    _optional(_TEXT, "target"),
    _required(_INT32, "evaluation"),
    _optional(_REAL, "value"),
    _required(_INT, "n"),
    _required(_TEXT, "letters"),
)
"""Best first, over the rows that all have; evaluations that share a letter cannot be distinguished."""

FLIPS: Final = _table(
    _required(_INT32, "pair"),
    _required(_TEXT, "flip"),
    _required(_INT, "index_a", "index_b"),
    _required(_INT32, "replication"),
    _required(_REAL, "value_a", "value_b"),
)
"""`pair` is the number of the row in `pairs`, from 0; `flip` is `lost` or `won`; `index_a` and `index_b` are the
`_index_` of the example in the dataset of each side."""

LEFT_OUT: Final = _table(_required(_TEXT, "scorer", "metric", "signature", "reason"))
"""The metrics that refused the scores of an evaluation; a comparison without such metrics lacks the table."""

STYLE: Final = pa.struct(
    [(name, pa.int64()) for name in ("characters", "words", "headings", "list_items", "bold", "code_blocks")]
)
"""The length and the markup of a response; see `evaluand.matches.response_style`."""

MATCHES: Final = _table(
    _required(_INT, INDEX),
    _required(_INT32, "replication", "a", "b"),
    _required(_TEXT, "order"),
    _optional(pa.binary(16), "digest"),
    _optional(_INT, "judgement"),
    _required(_INT32, "round"),
    _required(_TEXT, "status"),
    _optional(_TEXT, "reason", "missing"),
    _optional(_REAL, "outcome", "first", "strength"),
    _required(_BOOL, "equal"),
    _optional(_TEXT, "label"),
    _json("data"),
    _optional(_TEXT, "explanation", "judge"),
    _optional(STYLE, "style_a", "style_b"),
    _json("usage"),
)
"""`a` and `b` are the numbers of the systems, a < b, from 0. `order` is `ab` if the judge saw the response of a first,
else `ba`. `digest` is that of all that the judge could see, in its order; `judgement` is the number of the call that
decided the match, which several matches may share, and null if no call was needed or made. `missing` says whose
response is missing: `a`, `b` or `both`. `outcome` is a's share of the win: 1, ½ for a tie, 0, or a probability; `first`
is the same for the response that was seen first, as the judge gave it. `equal`: equal responses, a tie without a call.
`judge` is the person who judged. `round` is that of a schedule which chooses by the outcomes so far."""

JUDGEMENT_SPANS: Final = _table(_required(_INT, "judgement"), [*SPANS][2:])
"""The steps inside the calls of a judge, as in `SPANS`, by the number of the judgement."""

RATINGS: Final = _table(
    _required(_TEXT, "system"),
    _optional(_INT32, "rank"),
    _optional(_TEXT, "letters"),
    _optional(_REAL, "strength", "rating", "standard_error", "low", "high"),
    _optional(_REAL, "win_rate", "win_rate_low", "win_rate_high", "win_rate_worst", "win_rate_best"),
    _required(_REAL, "n", "won", "tied", "lost", "n_missing", "n_skipped"),
    _required(_INT32, "opponents"),
    _required(_INT, "examples"),
    _optional(_TEXT, "reason"),
)
"""Best first. `strength` is in log-odds, with mean 0; `rating` is 1000 + 400 · strength / ln 10 (Bradley–Terry), or the
win rate by which systems are ranked; `standard_error`, `low` and `high` are those of `rating`. `rank` is 1 + the number
of systems that are significantly better; systems that share one of the `letters` cannot be distinguished. `win_rate` is
the mean over opponents, each of which counts equally; `win_rate_worst` and `win_rate_best` are its values if all
missing matches were lost or won. `n_skipped` counts matches in which a response was skipped, which count nowhere else.
Both orders of a pair are one match, half each, so that counts, such as `n` = `won` + `tied` + `lost`, may end in .5.
With a baseline, all columns from `win_rate` to `examples` are of the matches with it. `reason` says why something is
undefined, such as one end of an interval."""

WIN_RATES: Final = _table(
    _required(_TEXT, "a", "b"),
    _optional(_REAL, "win_rate", "low", "high"),
    _required(_REAL, "n", "won", "tied", "lost", "n_missing", "n_skipped"),
    _required(_INT, "examples"),
)
"""Each system `a` against each other one, `b`: a's share of the win, null where they never met."""

DIFFERENCES: Final = _table(
    _required(_TEXT, "a", "b"),
    _optional(_REAL, "difference", "low", "high", "p", "p_holm", "p_shaffer"),
    _required(_TEXT, "test"),
    _optional(_TEXT, "reason"),
)
"""Every two systems once, in the order of the ranking: the rating of `a` minus that of `b`. `p_shaffer` is null where
there are two systems; it is what decides otherwise."""

PARAMETERS: Final = _table(
    _required(_TEXT, "name"),
    _optional(_TEXT, "system"),
    _optional(_REAL, "value", "standard_error", "low", "high"),
    _optional(_TEXT, "reason"),
)
"""What a method estimates besides ratings: the parameter of ties, and the coefficients of covariates."""

BIAS: Final = _table(
    _optional(_TEXT, "judge"),
    _required(_TEXT, "measure"),
    _optional(_REAL, "share", "low", "high"),
    _required(_REAL, "n", "first", "second", "neither"),
    _required(_INT, "n_left_out"),
)
"""What the order of presentation did, by judge; null is all judges together. The measure `position_bias` is the share
of judgements (`n`) that the response seen first won; `first`, `second` and `neither` count its winners. `inconsistency`
is the share of the pairs seen in both orders (`n`) with opposite winners: of these `first` counts those in which the
first response won twice, `second` the others, and `neither` counts the pairs with a tie in one order only, which are no
contradiction. `n_left_out` are the judgements, or pairs, of which there is only one order."""

MEASURES: Final = _table(
    _required(_TEXT, "measure", "part"),
    _optional(_REAL, "value", "low", "high"),
    _required(_INT, "n"),
    _required(_REAL, "effective"),
    _optional(_TEXT, "reason"),
    _required(_TEXT, "note"),
)
"""The measures of a judge against people's labels. `part` names the judgements or labels that a measure covers, such as
`first order`, and is empty for all; `effective` is the number of independent rows with as much information; `note` has
the counts behind the value."""

CONFUSION: Final = _table(_required(_TEXT, "people", "judge"), _required(_INT, "n"))
"""How often each label of people met each one of the judge; `abstained` where the judge gave none."""

CALIBRATION: Final = _table(_required(_REAL, "judge", "people"), _optional(_REAL, "low", "high"), _required(_INT, "n"))
"""The mean number of people (with its interval) for the answers that a judge gave about the same number (its mean)."""

MISSES: Final = _table(
    _required(_TEXT, "id", "people", "judge"),
    _optional(_REAL, "difference"),
    _optional(_TEXT, "explanation"),
    _json("texts"),
)
"""The answers on which a judge lies furthest from people, the worst first."""

DAMAGED_LINES: Final = _table(
    _required(_TEXT, "segment"), _required(_INT, "line"), _required(_TEXT, "reason"), _required(pa.binary(), "content")
)
"""What could not be read of the journal of a recording; a long line is several rows."""

_COLUMN_TYPES: Final[Mapping[str, Any]] = {
    "string": pa.string(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "labels": pa.list_(pa.string()),
    "numbers": pa.list_(pa.float64()),
    "scores": pa.list_(pa.struct([("label", pa.string()), ("score", pa.float64())])),
}


def scores_schema(columns: Mapping[str, str]) -> pa.Schema:
    """The schema of a scorer's table.

    Args:
        columns: the columns of the scorer, name → `string`, `int64`, `double`, `bool`, `json`, `labels` (lists of
            text), `numbers` (a list) or `scores` (label → number).

    Raises:
        SpecError: a type is unknown, or a column has a name that every table of scores has.
    """
    return _table(_SCORES, (_column(name, kind) for name, kind in columns.items()))


_SCORES: Final = _table(
    _required(_INT, INDEX),
    _required(_INT32, "replication"),
    _optional(_INT32, "fold"),
    _optional(_INT, RESPONSE_INDEX),
    _optional(_TEXT, "target"),
    _required(pa.binary(16), "digest"),
    _required(_TEXT, "status"),
    _optional(_TEXT, "reason"),
    _optional(_REAL, "value"),
    _optional(_TEXT, "label"),
    _json("data"),
    _optional(_TEXT, "explanation"),
    _json("usage"),
)


def _column(name: str, kind: str) -> pa.Field:
    if name in _SCORES.names:
        raise SpecError(f"column {name!r}: every table of scores has a column of this name; choose another")
    if kind == "json":
        return json_field(name)
    if kind not in _COLUMN_TYPES:
        raise SpecError(f"column {name!r}: no type is called {kind!r}; known: json, {', '.join(_COLUMN_TYPES)}")
    return pa.field(name, _COLUMN_TYPES[kind])


class Appendable(Protocol):
    """What tables are written to: a draft, or what keeps their batches."""

    def append(self, table: str, batch: pa.RecordBatch) -> None: ...


class TableWriter:
    """Collects rows of a table and writes them to a draft in batches."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._rows: list[tuple[Any, ...]] = []
        self._characters = 0

    @property
    def is_full(self) -> bool:
        """Whether the rows fill a batch."""
        return len(self._rows) >= BATCH_ROWS or self._characters >= BATCH_CHARACTERS

    def add(self, row: tuple[Any, ...], characters: int = 0) -> None:
        """Adds a row with so many characters of text."""
        self._rows.append(row)
        self._characters += characters

    def flush(self, draft: Appendable, table: str) -> None:
        """Writes the pending rows to the draft."""
        if self._rows:
            draft.append(table, batch_of([*zip(*self._rows, strict=True)], self._schema))
            self._rows.clear()
            self._characters = 0


def batch_of(columns: Iterable[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Rows from columns in the order of a schema: arrays, or values of which Arrow makes some."""
    arrays = [
        cells if isinstance(cells, pa.Array) else pa.array(cells, field.type)
        for cells, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
