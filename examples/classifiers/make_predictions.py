"""Train three classifiers on scikit-learn's breast-cancer data and record their predictions for held-out patients.

Writes two files next to this one. patients.csv: the held-out patients with their true diagnosis. predictions.csv: each
classifier's prediction and its confidence. Nothing is downloaded.
"""

import csv
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

HERE = Path(__file__).parent
CLASSIFIERS = {
    "logistic_regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "random_forest": RandomForestClassifier(random_state=0),
    "nearest_neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(15)),
}


def main() -> None:
    data = load_breast_cancer()
    diagnosis = data.target_names[data.target]
    train, test = train_test_split(np.arange(len(diagnosis)), test_size=0.4, random_state=0, stratify=diagnosis)
    predictions = {}
    for name, classifier in CLASSIFIERS.items():
        classifier.fit(data.data[train], diagnosis[train])
        predictions[name] = classifier.predict(data.data[test])
        confidence = classifier.predict_proba(data.data[test]).max(axis=1)
        predictions[f"{name}_confidence"] = confidence.round(4)
    radius = data.data[:, list(data.feature_names).index("mean radius")]
    tumour = np.where(radius > np.median(radius), "large", "small")
    patients = zip(test, radius[test], diagnosis[test], tumour[test], strict=True)
    write_csv("patients.csv", ["patient", "mean_radius", "diagnosis", "tumour"], patients)
    write_csv("predictions.csv", ["patient", *predictions], zip(test, *predictions.values(), strict=True))


def write_csv(name: str, header: list[str], rows) -> None:
    with (HERE / name).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
