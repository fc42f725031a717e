"""The measures of judges, as arithmetic of columns: agreement with people, errors, biases, and corrected means."""
