"""Two columns of predictions scored and compared, as a script with pandas, scikit-learn and SciPy does it."""

import sys

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, matthews_corrcoef

frame = pd.read_csv(sys.argv[1])
for name in ("a", "b"):
    found = (
        accuracy_score(frame.label, frame[name]),
        f1_score(frame.label, frame[name], average="macro"),
        balanced_accuracy_score(frame.label, frame[name]),
        matthews_corrcoef(frame.label, frame[name]),
    )
    print(name, *(f"{value:.3f}" for value in found))
one, other = (np.asarray(frame[name] == frame.label, float) for name in ("a", "b"))
won, lost = int(((other == 1) & (one == 0)).sum()), int(((other == 0) & (one == 1)).sum())
interval = stats.bootstrap((other - one,), np.mean, n_resamples=999, batch=10, method="percentile", random_state=0)
print("difference", (other - one).mean(), interval.confidence_interval)
print("McNemar", won, lost, stats.binomtest(won, won + lost).pvalue)
