"""Step 3: metrics over scores by group, disparities and fairness criteria, Aggregator and Aggregation."""
