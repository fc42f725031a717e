"""Hostile variants of the files, texts and stores that evaluand reads, and what becomes of them.

mutations.py   makes a hostile input of a sound one
trees.py       the same for the values of JSON and YAML
targets.py     what reads foreign input, by name
campaign.py    runs many inputs in child processes; python -m faults.fuzzing.campaign --help, in tests/
"""
