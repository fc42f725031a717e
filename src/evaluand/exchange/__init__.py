"""Results of other tools in and out: as datasets, runs, evaluations and aggregations, and in the forms of other tools.

    file ──Importer──▶ samples ──▶ spool ──▶ dataset, run, evaluation, aggregation

An importer (`importer.py`) of one format yields samples (`sample.py`). They are sorted on disk (`spool.py`) and stored
by `storing.py`, which also checks the totals that the file states.
An exporter (`exporter.py`) of one format writes runs and evaluations for another tool.
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.exchange.importer import Importer as Importer, LogFile as LogFile
    from evaluand.exchange.sample import Grade as Grade, Sample as Sample, Total as Total
    from evaluand.exchange.storing import ImportedResult as ImportedResult, import_results as import_results

__getattr__, __dir__ = lazy_names(__name__)
