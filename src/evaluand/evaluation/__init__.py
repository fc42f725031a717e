"""Step 2: scorers, feedback functions, providers, human labels, Evaluator and Evaluation."""
