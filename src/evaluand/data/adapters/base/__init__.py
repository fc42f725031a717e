"""What every kind of adapter is built from.

adapter.py       `Adapter`, the base class of the kinds, `create_adapter`, steps with counts of their rows, and several
                 adapters one after the other
template.py      values and paths of a new structure, as in `TransformJSON`
options.py       checks of a configuration, and the errors that adapters raise
collections.py   lists of a row that belong together
columns.py       whole Arrow batches
"""
