"""What a metric is, and what several kinds of metrics have in common."""
