"""Statistics of metrics: intervals (`intervals`), and disparities between groups (`disparity`)."""
