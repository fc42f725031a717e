"""Reports: what is stored, for people and for programs.

`facts` says it as plain data, `terminal` makes tables of these. Three rules hold for every report:

- No value stands without its counts: how many rows it comes from, how many failed, how many were abstained from.
- What failed or was abstained from is told by reason, with its number and the first `_index_`.
- Text that comes from data is made harmless (`text.safe`) and is never read as markup.

Nothing here imports NumPy or Arrow, so a list of thousands of artifacts costs only the catalog.
"""
