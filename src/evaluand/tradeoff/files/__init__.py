"""Score and solution files: confidences of models, and operating points, as JSON.

ScoreFile ── confidences ──▶ SolutionFile.a_posteriori ──▶ SolutionFile ── tradeoff ──▶ Tradeoff
└─ SolutionFile.a_priori, at the thresholds of an earlier solution
"""
