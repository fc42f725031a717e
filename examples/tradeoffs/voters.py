"""Trade accuracy against fairness between ages: three models, trained, chosen and tested on a third of the data each.

The data are 944 people who were asked before the American election of 1996, and whom they voted for; statsmodels ships
them. The models never see anybody's age, but may predict the votes of some ages better than those of others.

Writes into the current folder: `front.html` with the fronts, their bands and the rates of groups, `front.svg` with the
front on validation and test data, `rates.svg` of the pick on test data, and `radar.svg`.

Needs scikit-learn, statsmodels and Matplotlib: pip install 'evaluand[plots,sklearn]' statsmodels
"""

from pathlib import Path

import numpy as np
import statsmodels.api as sm
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evaluand.report import matplotlib_figures
from evaluand.report.html.tradeoff import write_page
from evaluand.tradeoff import Confidences, compare_systems, solve

data = sm.datasets.anes96.load_pandas().data
voted = (data["vote"] == 1).to_numpy()  # for Dole; else for Clinton
seen = data[["popul", "TVnews", "selfLR", "ClinLR", "DoleLR", "educ", "income"]].to_numpy()
age = np.where(data["age"] < 35, "below 35", np.where(data["age"] < 60, "35 to 59", "60 and above"))
part = np.random.default_rng(1996).permutation(len(data)) % 3  # thirds: to train, to choose, to test

families = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "random forest": RandomForestClassifier(200, min_samples_leaf=5, random_state=0),
    "nearest neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(25)),
}


def confidences(rows: np.ndarray, system: str) -> Confidences:
    fitted = {name: clone(model).fit(seen[part == 0], voted[part == 0]) for name, model in families.items()}
    probabilities = {name: model.predict_proba(seen[rows])[:, 1] for name, model in fitted.items()}
    return Confidences.read(voted[rows], probabilities, {"age": age[rows]}, system=system)


DISPARITY = "equalized_odds difference by age"
chosen_on, tested_on = confidences(part == 1, "to choose"), confidences(part == 2, "to test")

points = solve(chosen_on, ["accuracy", DISPARITY]).deduplicated().with_bands()
front = points.front()
tested = front.at(tested_on).with_bands()
low, high = tested.hypervolume_interval()
print(points)
print(f"hypervolume {points.indicators()['hv']:.3f}, on test {tested.indicators()['hv']:.3f} ({low:.3f} to {high:.3f})")
for name, values, least, most in zip(np.array(front.models)[front.model], *front.ends, strict=True):
    cells = [f"{each:.3f} ({a:.3f} to {b:.3f})" for each, a, b in zip(values, least, most, strict=True)]
    print(f"  {name:20} accuracy {cells[0]}, odds difference {cells[1]}")

pick = points.pick("accuracy", [f"{DISPARITY} <= 0.15"])
on_test = pick.at(tested_on).with_intervals()
print(f"picked: {pick.models[pick.model[0]]} from {pick.threshold[0]:.3f} on")
for place, objective in enumerate(on_test.objectives):
    value, low, high = (end[0, place] for end in on_test.ends)
    print(f"  {objective.name}: {pick.value[0, place]:.3f} where chosen, {value:.3f} ({low:.3f} to {high:.3f}) on test")

systems = {"to choose": points, "to test": tested}
with Path("front.html").open("wb") as page:
    write_page("Voters of 1996", systems, page)
matplotlib_figures.save(matplotlib_figures.pareto(systems), Path("front.svg"))
matplotlib_figures.save(matplotlib_figures.radar(compare_systems(systems)), Path("radar.svg"))
matplotlib_figures.save(matplotlib_figures.rates(pick, tested_on), Path("rates.svg"))
