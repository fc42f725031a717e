"""Trains three classifiers on scikit-learn's breast-cancer data and records their predictions on held-out patients.

Writes patients.csv (who was held out, and the truth) and predictions.csv (what each classifier said of them, and how
sure it was) beside this file. Nothing is downloaded.
"""

import csv
from pathlib import Path

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
    data = load_breast_cancer(as_frame=True)
    diagnosis = data.target.map(dict(enumerate(data.target_names)))
    train, test, train_diagnosis, test_diagnosis = train_test_split(
        data.data, diagnosis, test_size=0.4, random_state=0, stratify=diagnosis
    )
    said = {}
    for name, classifier in CLASSIFIERS.items():
        classifier.fit(train, train_diagnosis)
        said[name] = classifier.predict(test)
        said[f"{name}_confidence"] = classifier.predict_proba(test).max(axis=1).round(4)
    large = test["mean radius"] > data.data["mean radius"].median()
    patients = zip(
        test.index, test["mean radius"], test_diagnosis, large.map({True: "large", False: "small"}), strict=True
    )
    write("patients.csv", ["patient", "mean_radius", "diagnosis", "tumour"], patients)
    write("predictions.csv", ["patient", *said], zip(test.index, *said.values(), strict=True))


def write(name: str, header: list[str], rows) -> None:
    with (HERE / name).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
