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

RESPONSES: Final = pa.schema(
    [
        pa.field(INDEX, pa.int64(), nullable=False),
        pa.field("replication", pa.int32(), nullable=False),
        pa.field("fold", pa.int32()),
        pa.field("digest", pa.binary(16), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("error", ERROR),
        pa.field("responses", pa.list_(RESPONSE_ITEM)),
        pa.field("n_responses", pa.int32(), nullable=False),
        pa.field("attempts", pa.int32(), nullable=False),
        pa.field("usage", USAGE),
        pa.field("started", pa.timestamp("us", "UTC")),
        pa.field("duration", pa.duration("us")),
    ]
)
"""`digest` is that of the part of the example that the task sees; `responses` is null for no answer, `[]` for an empty
answer. `place` of an error is its origin in the user's code: `app.py:11 in lookup`. `started` and `duration` are null
for calls that were logged without them."""

SPANS: Final = pa.schema(
    [
        pa.field(INDEX, pa.int64(), nullable=False),
        pa.field("replication", pa.int32(), nullable=False),
        pa.field("span", pa.int32(), nullable=False),
        pa.field("parent", pa.int32()),
        pa.field("name", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("start", pa.duration("us"), nullable=False),
        pa.field("duration", pa.duration("us")),
        pa.field("status", pa.string(), nullable=False),
        json_field("input"),
        json_field("output"),
        json_field("attributes"),
        json_field("events"),
    ]
)
"""`start` counts from the row's `started`; a null `duration` is a span left open or, if it has a status, one that was
logged without times. Span 0 is the call itself."""

INPUTS: Final = pa.schema(
    [
        pa.field("parent", pa.int32()),
        pa.field("file", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("rows", pa.list_(pa.struct([("first", pa.int64()), ("count", pa.int64())])), nullable=False),
    ]
)
"""A tree of files: each row is one file more than its `parent` (the number of a row above; null where it is the first),
so that many answers share what they have in common. `rows` are the answers made with exactly these files: ranges of
places in the table of responses, or of responses graded. `file` is relative to the folder of the code, `./` to the
current folder, and ends in `/` where a folder was listed. `state` is a digest of the content, or `absent`,
`unreadable`, `changed`."""

_GROUP: Final = pa.map_(pa.string(), pa.string())

_MEASURED: Final = (
    pa.field("evaluation", pa.int32(), nullable=False),
    *(pa.field(name, pa.string(), nullable=False) for name in ("scorer", "metric", "signature", "run_digest")),
    pa.field("target", pa.string()),
)

METRICS: Final = pa.schema(
    [
        *_MEASURED,
        pa.field("by", _GROUP, nullable=False),
        pa.field("value", pa.float64()),
        json_field("data"),
        pa.field("reason", pa.string()),
        *(pa.field(name, pa.float64()) for name in ("low", "high", "worst", "best")),
        pa.field("n", pa.int64(), nullable=False),
        *(pa.field(f"n_{status}", pa.int64(), nullable=False) for status in SCORE_STATUSES),
    ]
)
"""`evaluation` is the number of the aggregated evaluation, from 0; `run_digest` is that of its run."""

_RATED: Final = pa.struct(
    [
        pa.field("metric", pa.string()),
        pa.field("by", _GROUP),
        *(pa.field(name, pa.float64()) for name in ("value", "low", "high", "n")),
        pa.field("judged", pa.bool_()),
        *(pa.field(f"shrunk_{name}", pa.float64()) for name in ("value", "low", "high")),
    ]
)
"""A group with its raw and its shrunk value, and whether it is large enough to be judged."""

DISPARITIES: Final = pa.schema(
    [
        *_MEASURED,
        pa.field("over", pa.list_(pa.string()), nullable=False),
        pa.field("disparity", pa.string(), nullable=False),
        *(pa.field(name, pa.float64()) for name in ("value", "low", "high")),
        pa.field("reason", pa.string()),
        pa.field("lowest", _GROUP),
        pa.field("highest", _GROUP),
        pa.field("n_groups", pa.int64(), nullable=False),
        pa.field("small", pa.list_(_GROUP), nullable=False),
        pa.field("undefined", pa.list_(_GROUP), nullable=False),
        pa.field("decided_by", pa.string()),
        *(pa.field(name, _GROUP) for name in ("reference", "other", "given")),
        pa.field("at_once", pa.int64()),
        pa.field("unjudged", pa.list_(_GROUP)),
        pa.field("groups", pa.list_(_RATED)),
        *(pa.field(name, pa.float64()) for name in ("family_low", "family_high")),
        pa.field("family_size", pa.int64()),
        pa.field("family_method", pa.string()),
        pa.field("found", pa.bool_()),
    ]
)
"""The disparities of groups; `over` are the attributes that define the groups, and `decided_by` is, of the metrics of a
criterion, the one with this disparity. `reference` is the group to which others are compared, `other` that of a pair,
`given` the stratum, `at_once` the number of intervals that hold at the same time. The ends of `family` allow for all
`family_size` disparities of a system, and `found` says whether they show one. These are null in earlier stores."""

WORST_GROUPS: Final = pa.schema(
    [
        *_MEASURED,
        pa.field("by", _GROUP),
        *(pa.field(name, pa.float64()) for name in ("found", "value", "low", "high")),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("rest", pa.float64()),
        pa.field("confirmed", pa.bool_(), nullable=False),
        pa.field("n_looked", pa.int64(), nullable=False),
    ]
)
"""The groups for which a metric is worst: `found` on the half of the examples by which they were chosen, and `value` on
the other; `by` is null where none looked worse. See `evaluand.aggregation.worst_groups`."""

CURVES: Final = pa.schema(
    [
        *_MEASURED,
        pa.field("by", _GROUP, nullable=False),
        pa.field("curve", pa.string(), nullable=False),
        pa.field("part", pa.string()),
        pa.field("label", pa.string()),
        *(pa.field(name, pa.float64(), nullable=False) for name in ("x", "y")),
        *(pa.field(name, pa.float64()) for name in ("low", "high", "threshold")),
        pa.field("n", pa.float64(), nullable=False),
    ]
)
"""The points of curves; see `evaluand.metrics.base.curves`. `part` is the class of a curve, in a confusion matrix the
truth; `label` is the prediction in a confusion matrix; `n` is a number of rows, or their weight."""

PAIRS: Final = pa.schema(
    [
        pa.field("scorer", pa.string(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("signature", pa.string(), nullable=False),
        pa.field("direction", pa.string()),
        pa.field("share", pa.bool_(), nullable=False),
        pa.field("target", pa.string()),
        pa.field("by", _GROUP),
        pa.field("family", pa.string()),
        *(pa.field(name, pa.int32(), nullable=False) for name in ("a", "b")),
        *(pa.field(name, pa.int64(), nullable=False) for name in ("n", "n_used", "n_a_missing", "n_b_missing")),
        *(pa.field(name, pa.int64(), nullable=False) for name in ("n_skipped", "n_only_a", "n_only_b")),
        *(pa.field(name, pa.list_(pa.string()), nullable=False) for name in ("only_a", "only_b")),
        pa.field("clusters", pa.int64()),
        pa.field("binary", pa.bool_(), nullable=False),
        *(pa.field(name, pa.float64()) for name in ("value_a", "value_b", "difference", "low", "high")),
        pa.field("interval", pa.string(), nullable=False),
        *(pa.field(name, pa.float64()) for name in ("worst", "best", "p")),
        pa.field("test", pa.string(), nullable=False),
        pa.field("p_permutation", pa.float64()),
        pa.field("permutation", pa.string(), nullable=False),
        *(pa.field(name, pa.float64()) for name in ("p_holm", "p_shaffer", "p_benjamini_hochberg")),
        *(pa.field(name, pa.int64()) for name in ("won", "tied", "lost")),
        *(pa.field(name, pa.float64()) for name in ("effect", "detectable", "correlation", "variance_saved")),
        pa.field("reason", pa.string()),
        pa.field("p_interaction", pa.float64()),
    ]
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

RANKING: Final = pa.schema(
    [
        pa.field("scorer", pa.string(), nullable=False),
        pa.field("signature", pa.string(), nullable=False),
        pa.field("target", pa.string()),
        pa.field("evaluation", pa.int32(), nullable=False),
        pa.field("value", pa.float64()),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("letters", pa.string(), nullable=False),
    ]
)
"""Best first, over the rows that all have; evaluations that share a letter cannot be distinguished."""

FLIPS: Final = pa.schema(
    [
        pa.field("pair", pa.int32(), nullable=False),
        pa.field("flip", pa.string(), nullable=False),
        *(pa.field(name, pa.int64(), nullable=False) for name in ("index_a", "index_b")),
        pa.field("replication", pa.int32(), nullable=False),
        *(pa.field(name, pa.float64(), nullable=False) for name in ("value_a", "value_b")),
    ]
)
"""`pair` is the number of the row in `pairs`, from 0; `flip` is `lost` or `won`; `index_a` and `index_b` are the
`_index_` of the example in the dataset of each side."""

LEFT_OUT: Final = pa.schema(
    [pa.field(name, pa.string(), nullable=False) for name in ("scorer", "metric", "signature", "reason")]
)
"""The metrics that refused the scores of an evaluation; a comparison without such metrics lacks the table."""

STYLE: Final = pa.struct(
    [(name, pa.int64()) for name in ("characters", "words", "headings", "list_items", "bold", "code_blocks")]
)
"""The length and the markup of a response; see `evaluand.matches.response_style`."""

MATCHES: Final = pa.schema(
    [
        pa.field(INDEX, pa.int64(), nullable=False),
        pa.field("replication", pa.int32(), nullable=False),
        *(pa.field(name, pa.int32(), nullable=False) for name in ("a", "b")),
        pa.field("order", pa.string(), nullable=False),
        pa.field("digest", pa.binary(16)),
        pa.field("judgement", pa.int64()),
        pa.field("round", pa.int32(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("reason", pa.string()),
        pa.field("missing", pa.string()),
        *(pa.field(name, pa.float64()) for name in ("outcome", "first", "strength")),
        pa.field("equal", pa.bool_(), nullable=False),
        pa.field("label", pa.string()),
        json_field("data"),
        pa.field("explanation", pa.string()),
        pa.field("judge", pa.string()),
        *(pa.field(name, STYLE) for name in ("style_a", "style_b")),
        json_field("usage"),
    ]
)
"""`a` and `b` are the numbers of the systems, a < b, from 0. `order` is `ab` if the judge saw the response of a first,
else `ba`. `digest` is that of all that the judge could see, in its order; `judgement` is the number of the call that
decided the match, which several matches may share, and null if no call was needed or made. `missing` says whose
response is missing: `a`, `b` or `both`. `outcome` is a's share of the win: 1, ½ for a tie, 0, or a probability; `first`
is the same for the response that was seen first, as the judge gave it. `equal`: equal responses, a tie without a call.
`judge` is the person who judged. `round` is that of a schedule which chooses by the outcomes so far."""

JUDGEMENT_SPANS: Final = pa.schema([pa.field("judgement", pa.int64(), nullable=False), *[*SPANS][2:]])
"""The steps inside the calls of a judge, as in `SPANS`, by the number of the judgement."""

RATINGS: Final = pa.schema(
    [
        pa.field("system", pa.string(), nullable=False),
        pa.field("rank", pa.int32()),
        pa.field("letters", pa.string()),
        *(pa.field(name, pa.float64()) for name in ("strength", "rating", "standard_error", "low", "high")),
        *(pa.field(name, pa.float64()) for name in ("win_rate", "win_rate_low", "win_rate_high")),
        *(pa.field(name, pa.float64()) for name in ("win_rate_worst", "win_rate_best")),
        *(
            pa.field(name, pa.float64(), nullable=False)
            for name in ("n", "won", "tied", "lost", "n_missing", "n_skipped")
        ),
        pa.field("opponents", pa.int32(), nullable=False),
        pa.field("examples", pa.int64(), nullable=False),
        pa.field("reason", pa.string()),
    ]
)
"""Best first. `strength` is in log-odds, with mean 0; `rating` is 1000 + 400 · strength / ln 10 (Bradley–Terry), or the
win rate by which systems are ranked; `standard_error`, `low` and `high` are those of `rating`. `rank` is 1 + the number
of systems that are significantly better; systems that share one of the `letters` cannot be distinguished. `win_rate` is
the mean over opponents, each of which counts equally; `win_rate_worst` and `win_rate_best` are its values if all
missing matches were lost or won. `n_skipped` counts matches in which a response was skipped, which count nowhere else.
Both orders of a pair are one match, half each, so that counts, such as `n` = `won` + `tied` + `lost`, may end in .5.
With a baseline, all columns from `win_rate` to `examples` are of the matches with it. `reason` says why something is
undefined, such as one end of an interval."""

WIN_RATES: Final = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("a", "b")),
        *(pa.field(name, pa.float64()) for name in ("win_rate", "low", "high")),
        *(
            pa.field(name, pa.float64(), nullable=False)
            for name in ("n", "won", "tied", "lost", "n_missing", "n_skipped")
        ),
        pa.field("examples", pa.int64(), nullable=False),
    ]
)
"""Each system `a` against each other one, `b`: a's share of the win, null where they never met."""

DIFFERENCES: Final = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("a", "b")),
        *(pa.field(name, pa.float64()) for name in ("difference", "low", "high", "p", "p_holm", "p_shaffer")),
        pa.field("test", pa.string(), nullable=False),
        pa.field("reason", pa.string()),
    ]
)
"""Every two systems once, in the order of the ranking: the rating of `a` minus that of `b`. `p_shaffer` is null where
there are two systems; it is what decides otherwise."""

PARAMETERS: Final = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("system", pa.string()),
        *(pa.field(name, pa.float64()) for name in ("value", "standard_error", "low", "high")),
        pa.field("reason", pa.string()),
    ]
)
"""What a method estimates besides ratings: the parameter of ties, and the coefficients of covariates."""

BIAS: Final = pa.schema(
    [
        pa.field("judge", pa.string()),
        pa.field("measure", pa.string(), nullable=False),
        *(pa.field(name, pa.float64()) for name in ("share", "low", "high")),
        *(pa.field(name, pa.float64(), nullable=False) for name in ("n", "first", "second", "neither")),
        pa.field("n_left_out", pa.int64(), nullable=False),
    ]
)
"""What the order of presentation did, by judge; null is all judges together. The measure `position_bias` is the share
of judgements (`n`) that the response seen first won; `first`, `second` and `neither` count its winners. `inconsistency`
is the share of the pairs seen in both orders (`n`) with opposite winners: of these `first` counts those in which the
first response won twice, `second` the others, and `neither` counts the pairs with a tie in one order only, which are no
contradiction. `n_left_out` are the judgements, or pairs, of which there is only one order."""

MEASURES: Final = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("measure", "part")),
        *(pa.field(name, pa.float64()) for name in ("value", "low", "high")),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("effective", pa.float64(), nullable=False),
        pa.field("reason", pa.string()),
        pa.field("note", pa.string(), nullable=False),
    ]
)
"""The measures of a judge against people's labels. `part` names the judgements or labels that a measure covers, such as
`first order`, and is empty for all; `effective` is the number of independent rows with as much information; `note` has
the counts behind the value."""

CONFUSION: Final = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("people", "judge")),
        pa.field("n", pa.int64(), nullable=False),
    ]
)
"""How often each label of people met each one of the judge; `abstained` where the judge gave none."""

CALIBRATION: Final = pa.schema(
    [
        *(pa.field(name, pa.float64(), nullable=False) for name in ("judge", "people")),
        *(pa.field(name, pa.float64()) for name in ("low", "high")),
        pa.field("n", pa.int64(), nullable=False),
    ]
)
"""The mean number of people (with its interval) for the answers that a judge gave about the same number (its mean)."""

MISSES: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        *(pa.field(name, pa.string(), nullable=False) for name in ("people", "judge")),
        pa.field("difference", pa.float64()),
        pa.field("explanation", pa.string()),
        json_field("texts"),
    ]
)
"""The answers on which a judge lies furthest from people, the worst first."""

DAMAGED_LINES: Final = pa.schema(
    [
        pa.field("segment", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("content", pa.binary(), nullable=False),
    ]
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
    return pa.schema([*_SCORES, *(_column(name, kind) for name, kind in columns.items())])


_SCORES: Final = pa.schema(
    [
        pa.field(INDEX, pa.int64(), nullable=False),
        pa.field("replication", pa.int32(), nullable=False),
        pa.field("fold", pa.int32()),
        pa.field(RESPONSE_INDEX, pa.int64()),
        pa.field("target", pa.string()),
        pa.field("digest", pa.binary(16), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("reason", pa.string()),
        pa.field("value", pa.float64()),
        pa.field("label", pa.string()),
        json_field("data"),
        pa.field("explanation", pa.string()),
        json_field("usage"),
    ]
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
