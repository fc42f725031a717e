"""Cross-validate two classifiers on the same five folds, three times; the second run of one reuses everything.

Needs scikit-learn: pip install 'evaluand[sklearn]'
"""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evaluand import Accuracy, Aggregator, Dataset, EstimatorTask, Evaluator, Measure, Runner, Split

frame = load_breast_cancer(as_frame=True).frame
data = Dataset.from_pandas(frame, expected="target")
split = Split(folds=5, stratified=True, repeats=3, seed=1)
models = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "random forest": RandomForestClassifier(50),
}

runner = Runner()
for name, model in models.items():
    run = runner.run(EstimatorTask(model, split), data, name=name)
    evaluation = Evaluator().evaluate(run, {"same": lambda output, expected: output["prediction"] == expected})
    [row] = Aggregator().aggregate([evaluation], [Measure("same", Accuracy())]).table().to_pylist()
    print(f"{name}: {row['value']:.3f} of {row['n']} ({row['low']:.3f} to {row['high']:.3f}), {run.receipt}")

again = runner.run(EstimatorTask(models["random forest"], split), data)
print("again:", again.receipt)
