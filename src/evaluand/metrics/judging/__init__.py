"""What a judge is worth, as arithmetic of columns: agreement with people, errors, biases, and corrected means."""
