"""Intervals of confidence, and disparities of groups."""
