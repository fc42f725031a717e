"""Problems, and how predictions are judged by them: every metric under a named public definition.

    problem      what is predicted, from which data, by which split and metrics
    definitions  each metric in terms of our kinds, under each public definition: `definitions.json`
    sides        the two tables, truth and predictions: their cells, and the example of each row
    aligned      their columns as kinds of metrics read them, one row for each example
    criteria     fits labels to a criterion
    judging      judges two tables
    layout       the columns of prediction and truth files
    files        reads and checks such files
    truth        the truth of a problem, and the rows that each part of its split tests
    parts        the files of each part, judged with faults by line
    inline       a problem stated by two files and metrics, without a document
    formats      how problems are written by some system, found by the registry

All faults are reported at once, and nothing with a fault is scored. The arithmetic is that of the kinds of metrics.
"""
