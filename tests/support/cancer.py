"""Breast cancer data of scikit-learn, predicted by a model of the other half."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def cancer() -> tuple[list[str], np.ndarray]:
    """Half of scikit-learn's breast cancer data, and how sure a model of the other half is of each."""
    datasets, linear, pipeline = (
        pytest.importorskip(f"sklearn.{name}") for name in ("datasets", "linear_model", "pipeline")
    )
    scaling = pytest.importorskip("sklearn.preprocessing")
    x, y = datasets.load_breast_cancer(return_X_y=True)
    model = pipeline.make_pipeline(scaling.StandardScaler(), linear.LogisticRegression()).fit(x[::2], y[::2])
    return [("malignant", "benign")[label] for label in y[1::2]], model.predict_proba(x[1::2])[:, 1]


def answers(scores: np.ndarray) -> list[dict[str, Any]]:
    return [
        {
            "prediction": "benign" if s > 0.5 else "malignant",
            "confidence": {"benign": float(s), "malignant": float(1 - s)},
        }
        for s in scores
    ]
