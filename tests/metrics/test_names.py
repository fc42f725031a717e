"""The names of metrics: everyday ones, those of scikit-learn and those of D3M lead to one metric each."""

from __future__ import annotations

import runpy

import numpy as np
import pytest
from support.places import ROOT_FOLDER

from evaluand import SpecError, evaluate
from evaluand.core import registry
from evaluand.metrics.names import canonical_name, is_name, make_metric, metric_names, resolve_metric

THREE = (["a", "b", "c", "a", "c"], ["a", "b", "a", "a", "b"])


@pytest.mark.parametrize("one", metric_names(), ids=lambda one: one.name)
def test_every_name_of_the_table_leads_to_its_metric(one) -> None:  # type: ignore[no-untyped-def]
    kind = registry.find("metrics", one.kind)
    for name in (one.name, *one.aliases, one.name.upper(), one.name.replace("_", "-")):
        assert resolve_metric(name) == (one.kind, one.parameters), name
        assert canonical_name(name) == one.name
    assert {*one.parameters} <= {*kind.__dataclass_fields__}


@pytest.mark.parametrize(
    ("name", "kind", "parameters"),
    [
        ("f1Macro", "f_beta", {"average": "macro"}),
        ("rocAuc", "roc_auc", {}),
        ("meanSquaredError", "mean_squared_error", {}),
        ("jaccardSimilarityScore", "jaccard", {"average": "binary"}),
        ("objectDetectionAP", "mean_average_precision", {}),
        ("hitsAtK", "hits_at_k", {}),
        ("R2", "r_squared", {}),
        ("mAP", "mean_average_precision", {}),
        ("nDCG@10", "ndcg", {"k": 10}),
        ("map@5", "map_at_k", {"k": 5}),
        ("precision at 3", "precision_at_k", {"k": 3}),
        ("hit_rate@3", "hits_at_k", {"k": 3}),
        ("pass@1", "pass_at_k", {"k": 1}),
        ("wer", "word_error_rate", {}),
        ("quadratic_weighted_kappa", "weighted_kappa", {"weights": "quadratic"}),
        ("roc_auc_ovo", "roc_auc_one_vs_one", {}),
        ("roc_auc_ovr", "roc_auc", {}),
        ("top_5_accuracy", "top_k", {"k": 5}),
        ("F0.5", "f_beta", {"beta": 0.5, "average": "binary"}),
        ("f2_weighted", "f_beta", {"beta": 2.0, "average": "weighted"}),
        ("p95", "quantile", {"q": 0.95}),
        ("Cohen's kappa", "cohen_kappa", {}),
    ],
)
def test_names_are_read_however_they_are_spelled(name: str, kind: str, parameters: dict[str, object]) -> None:
    found = resolve_metric(name)
    assert found.kind == kind
    assert parameters.items() <= found.parameters.items()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("area under curve", "did you mean roc_auc (area under the ROC curve) or average_precision"),
        (
            "hit_rate",
            "did you mean recall (share of what was expected that was found; hit rate of a class) or hits_at_k",
        ),
        ("acuracy", "no metric is called 'acuracy' (did you mean 'accuracy'?)"),
        ("neg_mean_absolute_error", "scikit-learn's name for mean_absolute_error with its sign reversed"),
        ("neg_root_mean_squared_error", "name root_mean_squared_error, which is shown without it"),
        ("rouge", "'rouge' is a scorer, which grades each answer"),
        ("brier_score_loss", "of two classes it is brier with halved: true"),
        ("zzz", "no metric is called 'zzz'; `evaluand list metrics` shows all names"),
        ("", "no metric is called ''"),
        ("f0", "no metric is called 'f0'"),
        ("@5", "no metric is called '@5'"),
    ],
)
def test_unknown_names_lead_to_one_that_is_meant(name: str, sentence: str) -> None:
    assert not is_name(name)
    with pytest.raises(SpecError) as raised:
        resolve_metric(name)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["f1", "precision", "recall", "jaccard", "tpr", "fpr", "specificity", "f2"])
def test_a_metric_of_one_class_refuses_several_classes_and_leads_to_the_averages(name: str) -> None:
    with pytest.raises(SpecError, match=r"is of one class, and there are 3 labels \('a', 'b', 'c'\): name \w+_macro"):
        evaluate(*THREE, metrics=name)
    with pytest.raises(SpecError, match="each row has a set of labels: name"):
        evaluate([["a"], ["a", "b"]], [["a"], ["b"]], metrics=name)
    with pytest.raises(SpecError, match="needs a positive class, and the labels are 'cat' and 'dog': choose it"):
        evaluate(["cat", "dog"], ["cat", "dog"], metrics=name)
    assert evaluate(["y", "n"], ["y", "n"], metrics=name).rows[0].signature.count("label=y") == 1
    assert evaluate(*THREE, metrics=name, label="a").rows[0].value >= 0
    assert evaluate([1, 0, 1], [1, 0, 0], metrics=name).rows[0].signature.count("label=1") == 1


def test_one_metric_has_one_printed_name_and_is_found_by_each_of_its_names() -> None:
    result = evaluate(*THREE, metrics=["f1Macro", "precision_macro", "acc", "kappa"])
    text = str(result)
    assert all(name in text for name in ("f1_macro · ", "precision_macro · ", "accuracy · ", "cohen_kappa · "))
    for names in (
        ("f1_macro", "f1Macro", "fscore_macro"),
        ("cohen_kappa", "kappa"),
        ("accuracy", "acc", "exact_match"),
    ):
        assert len({result[name].signature for name in names}) == 1
    with pytest.raises(KeyError, match="'f1' was not requested; there are f1_macro, precision_macro, accuracy"):
        result["f1"]
    binary = evaluate([1, 0, 1], [1, 0, 0], metrics=["f1", "tpr"])
    assert "f1 · " in str(binary)
    assert binary["f1"] is binary["f1_score"]
    assert binary["recall"] is binary["sensitivity"]


def test_parameters_replace_those_of_a_name() -> None:
    assert make_metric("f1", label="spam").average is None  # type: ignore[attr-defined]
    assert make_metric("f1", average="macro") == make_metric("f1_macro")


def test_average_precision_of_two_classes_is_that_of_the_positive_one() -> None:
    scores = {0: [0.9, 0.6, 0.3], 1: [0.1, 0.4, 0.7]}
    result = evaluate([0, 1, 1], [0, 0, 1], metrics="ap", scores=scores)
    assert result["ap"] is result["average_precision_score"]
    assert "label=1" in result["ap"].signature
    with pytest.raises(SpecError, match="average_precision of two classes is that of the positive one, and the labels"):
        evaluate(["cat", "dog"], ["cat", "dog"], metrics="ap", scores={"cat": [0.9, 0.1], "dog": [0.1, 0.9]})
    three = {"a": [0.8, 0.1, 0.2], "b": [0.1, 0.8, 0.2], "c": [0.1, 0.1, 0.6]}
    assert "average=macro" in evaluate(["a", "b", "c"], ["a", "b", "c"], metrics="ap", scores=three)["ap"].signature


@pytest.mark.parametrize("suffix", ["macro", "weighted", "micro"])
@pytest.mark.parametrize("name", ["f1", "precision", "recall", "jaccard"])
def test_averages_by_name_are_those_of_scikit_learn(name: str, suffix: str) -> None:
    from sklearn import metrics

    generator = np.random.default_rng(7)
    for _ in range(6):
        truth, predictions = generator.integers(0, 4, 12), generator.integers(0, 5, 12)
        expected = getattr(metrics, f"{name}_score")(truth, predictions, average=suffix, zero_division=0)
        assert evaluate(truth, predictions, metrics=f"{name}_{suffix}").rows[0].value == pytest.approx(
            expected, abs=1e-12
        )


def test_the_reference_lists_the_present_names() -> None:
    place = ROOT_FOLDER / "docs" / "reference" / "write_metric_names.py"
    script = runpy.run_path(str(place))
    published = (place.parent / "metrics.md").read_text(encoding="utf-8")
    assert published == script["page"](), "write it anew: python docs/reference/write_metric_names.py"


@pytest.mark.parametrize("name", ["recall", "tpr", "precision", "fpr", "specificity"])
def test_a_parameter_that_a_metric_lacks_is_refused_with_those_that_it_has(name: str) -> None:
    with pytest.raises(SpecError, match=r" has no parameter 'beta'; known: missing, reduce, .*label"):
        make_metric(name, label=1, beta=2)
    with pytest.raises(SpecError, match=r"^accuracy has no parameter 'intervall' \(did you mean 'interval'\?\)"):
        make_metric("accuracy", intervall="exact")
