"""What the page reads of a store: for each kind of path, such as `rows/RUN/EVALUATION/3`, a function that reads it."""
