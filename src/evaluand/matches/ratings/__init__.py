"""Ratings of systems from matches: one number per system, with its uncertainty.

method.py                    how systems are rated, validated, and its signature
estimates.py                 Bradley–Terry, and win rates, also at equal length
tables.py                    several sets of matches as arrays, and the rows of the tables, with ranks and letters
rating_gates.py              rules that ratings must fulfil
rating.py                    `rate`, and the artifact in which ratings are stored
"""
