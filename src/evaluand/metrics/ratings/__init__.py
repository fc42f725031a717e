"""Ratings of systems from matches: counts, win rates, Bradley–Terry and its kin, from arrays alone."""
