# A cell of a notebook; the last line displays a table with intervals. Needs scikit-learn.
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evaluand import evaluate

features, labels = load_breast_cancer(return_X_y=True)
seen, unseen, learned, truth = train_test_split(features, labels, random_state=1)
pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(seen, learned)
result = evaluate(truth, pipeline.predict_proba(unseen), metrics=["accuracy", "f1", "auc"])
result
