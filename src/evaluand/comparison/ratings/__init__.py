"""Ratings of systems from matches: one number per system, with its uncertainty.

method.py                    how systems are rated, validated, and its signature
gathering.py                 several sets of matches as one table of arrays
strengths.py, win_shares.py  the methods: Bradley–Terry, win rates
rating.py, stored.py         `rate`, and the artifact in which ratings are stored
"""
