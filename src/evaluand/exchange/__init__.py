"""Results of other tools as datasets, runs, evaluations and aggregations.

    file ──Importer──▶ samples ──▶ spool ──▶ dataset, run, evaluation, aggregation

An importer (`importer.py`) of one format yields samples (`sample.py`). They are sorted on disk (`spool.py`) and stored
by `storing.py`, which also checks the totals that the file states.
"""
