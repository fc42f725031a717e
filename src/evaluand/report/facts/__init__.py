"""What is stored, as facts: plain, complete, JSON-like data from which every form of a report is made.

One module per kind of artifact, and one for the results of an experiment. None of them imports NumPy or Arrow
before it reads a table.
"""
