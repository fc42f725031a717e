"""Leaderboards: the results of feedbacks for several versions of apps, compared."""
