"""Prediction columns of a table graded against its truth: types and metrics follow from the data.

names      which columns look like truth, predictions and scores
tables     reads files, and joins them by id
files      the rows and the systems of files
readings   truth and predictions read together, and the kind of target
systems    the predictions and scores of each system in the types of the truth
proposals  the metrics that suit the target
scoring    `score_systems`: values, artifacts and gates of systems
gates      the results of gates for each system
"""
