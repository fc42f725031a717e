"""Graders of text and highlights: values by hand, the vectors of another system, and what they abstain from."""

from __future__ import annotations

import json
import math
import random
import re
import statistics
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.places import VECTORS_FOLDER, needs

from evaluand import (
    Aggregator,
    Dataset,
    DetectLanguage,
    Evaluator,
    FBeta,
    Mean,
    Measure,
    NoOpTracer,
    Precision,
    Recall,
    Runner,
)
from evaluand.core.errors import DataError, SpecError
from evaluand.core.registry import find
from evaluand.core.text.language import language_mixture, language_of, languages_of
from evaluand.evaluation.scorer import ReferenceScorer, Score
from evaluand.evaluation.scorers.language_match import LanguageMatch
from evaluand.evaluation.scorers.spans import HighlightCoverage
from evaluand.evaluation.scorers.text_overlap import Bleu, Chrf, Rouge
from evaluand.interop.pharia.graders import (
    BleuGrader,
    FScores,
    HighlightCoverageGrader,
    LanguageMatchesGrader,
    MeanAccumulator,
    RougeGrader,
)
from evaluand.metrics.base.signature import words_of
from evaluand.report.facts.aggregation import metrics_facts

ENGLISH = "The weather is going to be very nice tomorrow."
GERMAN = "Morgen wird das Wetter wahrscheinlich sehr schön werden."
FRENCH = "Voici une phrase française à propos de la pluie."

VECTORS = VECTORS_FOLDER / "pharia"
needs_vectors = needs(VECTORS)


# ---------------------------------------------------------------- what the other system gives


def vectors(name: str) -> Any:
    return json.loads((VECTORS / name).read_text())


def f_scores(reported: dict[str, float]) -> FScores:
    return FScores(**reported)


@needs_vectors
def test_bleu_and_rouge_are_those_of_the_vectors() -> None:
    cases = vectors("graders.json")["bleu_rouge"]
    assert cases
    for case in cases:
        texts = case["hypothesis"], case["reference"]
        assert BleuGrader().calculate_bleu(*texts) == pytest.approx(case["bleu"], abs=1e-9)
        found = RougeGrader().calculate_rouge(*texts)
        for share in ("precision", "recall", "f_score"):
            assert getattr(found, share) == pytest.approx(case["rouge2"][share], abs=1e-9)


@needs_vectors
def test_highlight_coverage_is_that_of_the_vectors_and_defined_where_these_divide_by_zero() -> None:
    cases = vectors("graders.json")["highlight_coverage"]
    assert cases
    for case in cases:
        found = HighlightCoverageGrader(case["beta"]).compute_fscores(case["generated"], case["expected"])
        if "raises" in case["result"]:
            assert math.isnan(found.precision)
            assert (found.recall, found.f_score) == (0, 0)
            assert found.reason == "nothing is highlighted, so there is no precision"
        else:
            assert found.reason is None
            for share, value in case["result"].items():
                assert getattr(found, share) == pytest.approx(value, abs=1e-9)


@needs_vectors
def test_languages_match_as_in_the_vectors() -> None:
    for case in vectors("graders.json")["language_matches"]:
        assert LanguageMatchesGrader().languages_match(case["input"], case["output"]) is case["match"]


@needs_vectors
def test_means_and_true_deviations_are_those_of_the_vectors() -> None:
    cases = vectors("mean_accumulator.json")["cases"]
    assert cases
    for case in cases:
        values = [0.1] * 1000 if case["values"] == "0.1 x 1000" else case["values"]
        found = MeanAccumulator()
        for value in values:
            found.add(value)
        assert found.extract() == pytest.approx(case["mean"], abs=1e-9)
        assert found.standard_deviation() == pytest.approx(case["true_population_sd"], abs=1e-9)
        error = case["true_population_sd"] / math.sqrt(max(len(values), 1))
        assert found.standard_error() == pytest.approx(error, abs=1e-9)


# ---------------------------------------------------------------- the accumulator


def accumulated(values: list[float]) -> MeanAccumulator:
    found = MeanAccumulator()
    for value in values:
        found.add(value)
    return found


def test_numbers_with_a_large_common_offset_keep_their_spread() -> None:
    values = [1e15 + random.Random(1).choice([0.0, 1.0, 5.0]) for _ in range(5000)]
    assert accumulated(values).standard_deviation() == pytest.approx(statistics.pstdev(map(Fraction, values)))


def test_a_mean_is_the_exact_sum_divided_by_the_count() -> None:
    assert accumulated([1.0] * 5 + [0.0] * 2 + [1.0] * 3).extract() == 0.8
    assert accumulated([1.0] * 3000 + [0.1] * 2000).extract() == float(3000 + 2000 * Fraction(0.1)) / 5000
    assert accumulated([1e16, 1.0, -1e16]).extract() == 1 / 3


def test_a_sum_that_overflows_has_a_mean() -> None:
    assert accumulated([1e308] * 3000).extract() == 1e308


@given(st.lists(st.floats(-1e6, 1e6), max_size=40), st.integers(0, 40))
def test_halves_merge_to_the_whole(values: list[float], cut: int) -> None:
    whole = accumulated(values)
    merged = accumulated(values[:cut]).merge(accumulated(values[cut:]))
    assert merged.extract() == pytest.approx(whole.extract(), abs=1e-6)
    assert merged.standard_deviation() == pytest.approx(whole.standard_deviation(), abs=1e-6)


def test_values_can_be_read_between_others() -> None:
    found = MeanAccumulator()
    found.add(1)
    assert found.extract() == 1
    found.add(2)
    assert (found.extract(), found.standard_deviation()) == (1.5, 0.5)


# ---------------------------------------------------------------- BLEU, chrF, ROUGE


def test_bleu_is_the_geometric_mean_of_the_precisions_by_hand() -> None:
    precisions = Fraction(7, 8) * Fraction(5, 7) * Fraction(3, 6) * Fraction(1, 5)
    score = Bleu().score("a b c d e f g h", "a b c d x f g h")
    assert score.value == pytest.approx(100 * float(precisions) ** 0.25)


def test_a_short_answer_costs_bleu_its_brevity() -> None:
    assert Bleu().score("a b c d", "a b c d e f").value == pytest.approx(100 * math.exp(1 - 6 / 4))


def test_a_short_text_that_is_the_reference_is_right_unless_all_orders_count() -> None:
    assert Bleu().score("the cat", "the cat").value == pytest.approx(100)
    assert Bleu(effective_order=False).score("the cat", "the cat").value == 0


def test_any_of_several_references_will_do() -> None:
    references = ["something else", "the cat sat on the mat"]
    assert Bleu().score("the cat sat on the mat", references).value == pytest.approx(100)
    assert Chrf().score("the cat sat on the mat", references).value == pytest.approx(100)
    assert Rouge().score("the cat sat on the mat", references).value == 1


def test_chrf_is_the_f_of_mean_precision_and_recall_by_hand() -> None:
    recall = (2 / 3 + 1 / 2) / 2  # of single letters and of pairs; no piece of the answer is longer
    assert Chrf().score("ab", "abc").value == pytest.approx(100 * 5 * recall / (4 + recall))


@pytest.mark.parametrize(
    ("variant", "precision", "recall"),
    [("1", 2 / 3, 2 / 4), ("2", 0, 0), ("L", 2 / 3, 2 / 4)],
)
def test_rouge_by_hand(variant: str, precision: float, recall: float) -> None:
    score = Rouge(variant=variant).score("the cat sat", "the dog sat here")
    assert score.columns == {"precision": pytest.approx(precision), "recall": pytest.approx(recall)}
    f = 2 * precision * recall / (precision + recall) if precision else 0
    assert score.value == pytest.approx(f)


def test_the_longest_common_sequence_keeps_the_order_of_words() -> None:
    assert Rouge(variant="1").score("sat cat the", "the cat sat").value == 1
    assert Rouge(variant="L").score("sat cat the", "the cat sat").value == pytest.approx(1 / 3)


def test_words_of_another_script_are_words_where_that_is_asked_for() -> None:
    assert Rouge().score("η γάτα", "η γάτα").reason == (
        "no reference has words of a–z and 0–9; the scorer rouge takes any_script"
    )
    with pytest.raises(SpecError, match="leave it out with any_script"):
        Rouge(any_script=True, stemmer=True)
    assert Rouge(any_script=True).score("η γάτα", "η γάτα κοιμάται").columns == {
        "precision": 1,
        "recall": pytest.approx(2 / 3),
    }


class Begins(ReferenceScorer):
    """A kind of a user's own says no more than how texts are compared."""

    kind = "begins"

    def compared(self, output: str, references: Sequence[str]) -> Score:
        if not any(map(str.strip, references)):
            return Score.abstained("no reference has words")
        return Score(100.0 * any(map(output.startswith, references)))


@pytest.mark.parametrize("scorer", [Bleu(), Chrf(), Rouge(), Begins()], ids=lambda scorer: scorer.kind)
def test_what_cannot_be_compared_is_abstained_from_and_what_is_no_reference_refused(scorer: Any) -> None:
    assert scorer.score("a", None).status == "abstained"
    assert scorer.score(["a"], "a").reason == "the answer is a list, not text"
    assert scorer.score("a", "").status == "abstained"
    assert scorer.score("", "a b c").value == 0
    for wrong in (3, [], ["a", None]):
        with pytest.raises(DataError, match="expected"):
            scorer.score("a", wrong)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Bleu(tokenize="flores200"),
        lambda: Bleu(lowercase="no"),  # type: ignore[arg-type]
        lambda: Chrf(char_order=0),
        lambda: Rouge(variant="3"),
        lambda: HighlightCoverage(beta=-1),
        lambda: LanguageMatch(language="deutsch"),
        lambda: LanguageMatch(threshold=2),
    ],
)
def test_parameters_that_are_none_are_refused(make: Any) -> None:
    with pytest.raises(SpecError, match="give"):
        make()


@pytest.mark.parametrize(
    ("kind", "module", "line"),
    [
        ("bleu", "sacrebleu", "needs sacrebleu: pip install 'evaluand[text]'"),
        ("chrf", "sacrebleu", "needs sacrebleu: pip install 'evaluand[text]'"),
        ("rouge", "rouge_score", "needs rouge-score: pip install 'evaluand[text]'"),
        ("language_match", "py3langid", "needs py3langid: pip install 'evaluand[language]'"),
    ],
)
def test_without_its_library_a_grader_says_what_to_install(
    kind: str, module: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SpecError) as raised:
        find("scorers", kind)()
    assert line in str(raised.value)


# ---------------------------------------------------------------- languages


def test_the_language_of_an_answer_is_that_of_the_input_or_a_given_one() -> None:
    assert LanguageMatch().score(GERMAN, None, GERMAN)[:2] == (1, "de")
    assert LanguageMatch().score(FRENCH, None, GERMAN)[:2] == (0, "fr")
    assert LanguageMatch(language="fr").score(FRENCH, None, GERMAN)[:2] == (1, "fr")
    assert LanguageMatch(input_key="question").score(GERMAN, None, {"question": GERMAN})[:2] == (1, "de")


@pytest.mark.parametrize(
    ("output", "asked", "reason"),
    [
        ("42", ENGLISH, "the answer has no language: the text '42'"),
        (None, ENGLISH, "the answer is null, not text"),
        (ENGLISH, {"question": ENGLISH}, "the input is an object, not text; name its text with input_key"),
        (ENGLISH, "!?", "the input has no language: the text '!?'"),
        ("ok", ENGLISH, "the language of the answer is uncertain: "),
    ],
)
def test_where_no_language_can_be_reported_there_is_no_grade(output: Any, asked: Any, reason: str) -> None:
    score = LanguageMatch().score(output, None, asked)
    assert score.status == "abstained"
    assert (score.reason or "").startswith(reason)


def test_the_other_systems_grader_lets_an_unknown_input_match_and_an_unknown_answer_not() -> None:
    grader = LanguageMatchesGrader()
    assert grader.languages_match("123", ENGLISH) is True
    assert grader.languages_match(ENGLISH, "123") is False


MIXED = f"{ENGLISH} {GERMAN}"


@pytest.mark.parametrize(
    ("output", "asked", "reason"),
    [
        (MIXED, ENGLISH, r"the language of the answer is unclear: it is in (de and en|en and de)"),
        (ENGLISH, MIXED, r"the language of the input is unclear: it is in (de and en|en and de)"),
    ],
)
def test_a_text_in_two_languages_has_no_clear_one(output: str, asked: str, reason: str) -> None:
    score = LanguageMatch().score(output, None, asked)
    assert (score.status, re.fullmatch(reason, str(score.reason)) is not None) == ("abstained", True)
    grader = LanguageMatchesGrader()
    assert grader.languages_match(asked, output) is (asked == MIXED)
    found = languages_of(MIXED)
    assert (sum(found.values()), min(found["en"], found["de"]) > 0.4) == (pytest.approx(1), True)
    assert DetectLanguage(threshold=0.9).run(MIXED, NoOpTracer()) is None


def test_a_few_words_of_another_language_leave_the_language_of_a_text_clear() -> None:
    text = " ".join([ENGLISH] * 6 + [GERMAN])
    assert LanguageMatch().score(text, None, ENGLISH)[:2] == (1, "en")
    assert language_mixture(text) is language_mixture("42! 43!") is language_mixture("") is None
    assert language_of(text).code == "en"


def test_texts_without_letters_have_no_language() -> None:
    assert language_of("") is None
    assert language_of("3 × 4 = 12") is None


# ---------------------------------------------------------------- highlights

stretches = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted).map(tuple), max_size=6)


@given(stretches, stretches, st.sampled_from([0.5, 1.0, 2.0]))
def test_coverage_is_that_of_sets_of_places(generated: Any, expected: Any, beta: float) -> None:
    given, wanted = ({place for start, end in side for place in range(start, end)} for side in (generated, expected))
    score = HighlightCoverage(beta=beta).score(generated, expected)
    both = len(given & wanted)
    columns = score.columns or {}
    assert columns["precision"] == (both / len(given) if given else None)
    assert columns["recall"] == (both / len(wanted) if wanted else None)
    missed, spurious = len(wanted - given), len(given - wanted)
    right = (1 + beta**2) * both
    total = right + beta**2 * missed + spurious
    assert score.value == pytest.approx(right / total if total else 1)
    assert (score.explanation is None) == bool(given and wanted)


def test_highlights_may_be_objects() -> None:
    score = HighlightCoverage(start_key="from").score([{"from": 0, "end": 4}], [[0, 2]])
    assert (score.columns or {})["precision"] == 0.5


@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        ("abc", "the generated highlights are the text 'abc', not a list"),
        ([3], "generated highlight 0 is the integer 3, not a pair"),
        ([[0, 2], [5, 3]], "generated highlight 1 ends at 3, before it starts at 5"),
        ([[-1, 3]], "its start is the integer -1, not an integer of at least 0"),
        ([{"start": 3}], "generated highlight 0 has 'start' and not 'end'"),
    ],
)
def test_what_is_no_highlight_is_named(wrong: Any, reported: str) -> None:
    with pytest.raises(DataError) as raised:
        HighlightCoverage().score(wrong, [[0, 1]])
    assert reported in str(raised.value)


def test_a_highlight_as_long_as_a_book_costs_no_more_than_a_short_one() -> None:
    assert HighlightCoverage().score([[0, 10**15]], [[10**14, 10**15]]).value == pytest.approx(18 / 19)


# ---------------------------------------------------------------- on the path


def test_shares_of_a_whole_dataset_are_of_all_places_and_failures_are_counted() -> None:
    data = Dataset.from_rows(
        [
            {"input": [[0, 4]], "expected": [[0, 2]]},
            {"input": [[0, 2]], "expected": [[0, 8]]},
            {"input": [], "expected": []},
            {"input": "?", "expected": [[0, 2]]},
        ]
    )
    evaluation = Evaluator().evaluate(Runner().run(lambda given: given, data), {"cover": HighlightCoverage()})
    measures = [Measure("cover", metric) for metric in (Precision(), Recall(), FBeta(), Mean(range=(0, 1)))]
    rows = Aggregator().aggregate([evaluation], measures).table().to_pylist()
    assert [row["value"] for row in rows] == pytest.approx(
        [4 / 6, 4 / 10, 8 / 16, statistics.fmean([4 / 6, 2 / 5, 1.0])]
    )
    assert [(row["n_scored"], row["n_failed"]) for row in rows] == [(3, 1)] * 4


def test_texts_are_graded_on_the_path() -> None:
    data = Dataset.from_rows([{"input": ENGLISH, "expected": ENGLISH}, {"input": GERMAN, "expected": ENGLISH}])
    run = Runner().run(lambda given: given, data)
    scorers = {"bleu": "bleu", "chrf": "chrf", "rouge": "rouge", "language": "language_match"}
    evaluation = Evaluator().evaluate(run, scorers)
    found = {name: evaluation.table(name)["value"].to_pylist() for name in scorers}
    assert found["language"] == [1, 1]
    assert [found[name][0] for name in ("bleu", "chrf", "rouge")] == pytest.approx([100, 100, 1])
    assert all(found[name][1] < found[name][0] / 2 for name in ("bleu", "chrf", "rouge"))


@pytest.mark.parametrize("n", range(1, 12))
def test_an_answer_that_is_the_reference_is_worth_no_more_than_all(n: int) -> None:
    text = " ".join("abcdefghijk"[:n])
    assert Bleu().score(text, text).value == 100.0


def test_the_mean_of_a_grade_has_the_range_that_its_grader_knows() -> None:
    data = Dataset.from_rows([{"input": text, "expected": ENGLISH} for text in (ENGLISH, ENGLISH, GERMAN)])
    run = Runner().run(lambda given: given, data)
    scorers = {"bleu": "bleu", "rouge": "rouge", "language": LanguageMatch(language="en"), "own": len_of}
    evaluation = Evaluator().evaluate(run, scorers)
    measures = [*(Measure(name, Mean()) for name in scorers), Measure("rouge", Mean(column="precision"))]
    measures.append(Measure("bleu", Mean(range=(0, 1000))))
    aggregation = Aggregator().aggregate([evaluation], measures)
    rows = aggregation.table().to_pylist()
    ranges = [words_of(row["signature"])["range"] for row in rows]
    one, all = "(0.0,1.0)", "(0.0,100.0)"
    assert ranges == [all, one, one, "(-inf,inf)", one, "(0.0,1000.0)"]
    assert (rows[2]["value"], round(rows[2]["high"], 3)) == (pytest.approx(2 / 3), 0.963)
    assert [row["label"] for row in metrics_facts(aggregation)][1:5] == [
        "mean(column=value) · rouge",
        "mean · language",
        "mean · own",
        "mean(column=precision) · rouge",
    ]


def len_of(output: str) -> int:
    return len(output)
