"""What every kind of adapter is built from.

adapter.py       `Adapter`, the base class of the kinds, and `create_adapter`
pipeline.py      several adapters one after the other
apply.py         one step, and several steps, as a function of a row
adapted.py       the rows that a pipeline produces, with counts
template.py      values and paths of a new structure, as in `TransformJSON`
options.py       checks of a configuration
collections.py   lists of a row that belong together
columns.py       whole Arrow batches
faults.py        the errors that adapters raise
"""
