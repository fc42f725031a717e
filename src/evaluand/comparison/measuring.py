"""Differences of any metric: which rows are paired, and which form measures them."""

from evaluand.comparison.difference import Measured, Sample
from evaluand.comparison.labelled_differences import LabelledRows, LabelledSample, label_rows
from evaluand.comparison.metric_differences import Computed, MetricSample
from evaluand.comparison.pairing import PairedRows, Pairing
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.prediction_powered import PredictionPoweredMean


def read_rows(pairing: Pairing, metric: Metric) -> PairedRows:
    """The rows with the values of a metric, and with people's labels where it reads them."""
    return label_rows(pairing, metric) if isinstance(metric, PredictionPoweredMean) else pairing.rows(metric)


def measure_pair(
    rows: PairedRows, a: int, b: int, computed: Computed | None = None, heaviest: float | None = None
) -> Measured:
    """Measures side `b` against side `a` over the rows of one group.

    Args:
        rows: paired rows, see `read_rows`.
        computed: of other pairs of the same rows; filled in.
        heaviest: see `Measured`.
    """
    if isinstance(rows, LabelledRows):
        return LabelledSample.from_rows(rows, a, b, heaviest)
    if rows.metric.averages:
        return Sample.from_rows(rows, a, b, heaviest)
    return MetricSample.from_rows(rows, a, b, computed, heaviest)
