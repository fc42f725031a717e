"""The kinds of schedules: which pairs of systems a judge compares, on which rows."""
