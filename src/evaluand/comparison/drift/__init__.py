"""Drift: do two datasets, runs or evaluations come from one distribution?"""
