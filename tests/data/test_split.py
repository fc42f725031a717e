"""Splits: every example in its place, whatever the order of the rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit

from evaluand.core.errors import SpecError
from evaluand.data.dataset import Dataset
from evaluand.data.split import Folds, Split
from evaluand.store.store import MemoryStore


def dataset(labels: list[Any], inputs: list[Any] | None = None) -> Dataset:
    inputs = list(range(len(labels))) if inputs is None else inputs
    return Dataset.from_rows([{"input": i, "expected": label} for i, label in zip(inputs, labels, strict=True)])


def by_example(data: Dataset, folds: Folds) -> list[tuple[Any, ...]]:
    """Each example's input, label and folds, without regard to order."""
    found = [(e.input, e.expected, *folds.numbers[:, e.position].tolist()) for e in data]
    return sorted(found, key=repr)


LABELS = st.lists(st.sampled_from("abc"), min_size=2, max_size=60)
SPLITS = st.one_of(
    st.builds(Split, folds=st.integers(2, 6), repeats=st.integers(1, 3), seed=st.integers(-5, 5)),
    st.builds(Split, test=st.floats(0.05, 0.95), repeats=st.integers(1, 3), seed=st.integers(-5, 5)),
)


def assigned(split: Split, data: Dataset) -> Folds | None:
    """The folds, or None where the dataset is too small for the split."""
    try:
        return split.assign(data)
    except SpecError:
        return None


# What holds for every split


@given(LABELS, st.integers(2, 6), st.integers(1, 3), st.booleans())
def test_each_example_is_tested_in_exactly_one_fold_of_each_repeat(
    labels: list[str], k: int, repeats: int, stratified: bool
) -> None:
    data = dataset(labels)
    folds = assigned(Split(folds=k, repeats=repeats, stratified=stratified), data)
    if folds is None:
        assert len(labels) < k or (stratified and min(Counter(labels).values()) < k)
        return
    assert folds.numbers.dtype == np.int32
    for repeat in range(repeats):
        tested = np.concatenate([folds.test(repeat, fold) for fold in range(folds.count)])
        assert sorted(tested) == list(range(len(data)))
        for fold in range(folds.count):
            test, train = folds.test(repeat, fold), folds.train(repeat, fold)
            assert sorted([*test, *train]) == list(range(len(data)))


@given(LABELS, st.integers(2, 6), st.booleans())
def test_sizes_of_folds_differ_by_at_most_one_as_a_whole_and_in_each_stratum(
    labels: list[str], k: int, stratified: bool
) -> None:
    data = dataset(labels)
    folds = assigned(Split(folds=k, stratified=stratified), data)
    if folds is None:
        return
    groups = [list(range(len(labels)))]
    if stratified:
        groups += [[i for i, label in enumerate(labels) if label == one] for one in set(labels)]
    for group in groups:
        sizes = np.bincount(folds.numbers[0, group], minlength=k)
        assert sizes.max() - sizes.min() <= 1


@given(st.data(), LABELS, SPLITS)
def test_shuffled_rows_are_tested_in_the_same_folds(draw: st.DataObject, labels: list[str], split: Split) -> None:
    inputs = draw.draw(st.lists(st.integers(0, 5), min_size=len(labels), max_size=len(labels)))  # some are alike
    order = draw.draw(st.permutations(range(len(labels))))
    data = dataset(labels, inputs)
    shuffled = dataset([labels[i] for i in order], [inputs[i] for i in order])
    folds, others = assigned(split, data), assigned(split, shuffled)
    if folds is None or others is None:
        assert folds is others
        return
    assert by_example(data, folds) == by_example(shuffled, others)


@given(LABELS, st.floats(0.05, 0.95), st.booleans())
def test_a_holdout_takes_its_share_of_the_whole_and_of_each_stratum(
    labels: list[str], share: float, stratified: bool
) -> None:
    folds = assigned(Split(test=share, stratified=stratified), dataset(labels))
    if folds is None:
        return
    tested = folds.test(0, 0)
    assert abs(len(tested) - share * len(labels)) <= 0.5
    if stratified:
        for label, size in Counter(labels).items():
            found = sum(labels[i] == label for i in tested)
            assert abs(found - size * len(tested) / len(labels)) < 1


def test_the_seed_and_the_repeat_change_the_folds() -> None:
    data = dataset(["x"] * 40)
    first, again, other = (Split(folds=4, repeats=2, seed=seed).assign(data).numbers for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first[0] != first[1]).any()
    assert (first[0] != other[0]).any()


def test_over_many_seeds_each_example_is_held_out_equally_often() -> None:
    data = dataset(["x"] * 10)
    counts = np.zeros(10)
    for seed in range(400):
        counts[Split(test=3, seed=seed).assign(data).test(0, 0)] += 1
    assert counts.sum() == 1200
    assert (abs(counts - 120) < 5 * np.sqrt(400 * 0.3 * 0.7)).all()  # five standard errors of a binomial


def test_the_folds_are_those_they_were_when_this_was_written() -> None:
    assert Split(folds=3, seed=7).assign(dataset(list("aabbcc"))).numbers.tolist() == [[2, 0, 1, 0, 1, 2]]


def test_the_digest_of_examples_decides_and_not_their_index() -> None:
    rows = [{"input": i, "expected": "x"} for i in range(12)]
    plain = Dataset.from_rows(rows)
    numbered = Dataset.from_rows([row | {"_index_": 7 * i} for i, row in enumerate(rows)])
    split = Split(folds=3)
    assert split.assign(plain).numbers.tolist() == split.assign(numbered).numbers.tolist()


def test_stored_rows_are_split_as_those_they_were_made_from() -> None:
    data = dataset(["a", "b"] * 10)
    split = Split(folds=5, stratified=True)
    assert split.assign(data.save(MemoryStore())).numbers.tolist() == split.assign(data).numbers.tolist()


# Strata


@pytest.mark.parametrize("labels", ["a" * 13 + "b" * 17, "a" * 5 + "b" * 50 + "c" * 46, "abc" * 11])
def test_folds_are_as_even_as_those_of_scikit_learn(labels: str) -> None:
    folds = Split(folds=5, stratified=True).assign(dataset(list(labels)))
    ours = [sorted(Counter(labels[i] for i in folds.test(0, fold)).items()) for fold in range(5)]
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    theirs = [sorted(Counter(labels[i] for i in test).items()) for _, test in splitter.split(labels, list(labels))]
    assert sorted(n for fold in ours for n in fold) == sorted(n for fold in theirs for n in fold)


@pytest.mark.parametrize("labels", ["a" * 13 + "b" * 17, "a" * 5 + "b" * 50 + "c" * 46, "a" * 90 + "b" * 10])
def test_a_stratified_holdout_has_the_mixture_of_scikit_learn(labels: str) -> None:
    folds = Split(test=10, stratified=True).assign(dataset(list(labels)))
    [(_, theirs)] = StratifiedShuffleSplit(1, test_size=10, random_state=0).split(labels, list(labels))
    assert Counter(labels[i] for i in folds.test(0, 0)) == Counter(labels[i] for i in theirs)


def test_strata_may_come_from_another_column() -> None:
    rows = [{"input": i, "expected": "x", "site": "AB"[i < 4]} for i in range(12)]
    data = Dataset.from_rows(rows, input="input", attributes=["site"])
    folds = Split(folds=4, stratified="site").assign(data)
    for fold in range(4):
        assert Counter(rows[i]["site"] for i in folds.test(0, fold)) == {"A": 2, "B": 1}


def test_values_of_any_type_and_none_are_strata() -> None:
    labels = [{"k": [1]}, 1, 1.0, None] * 2
    folds = Split(folds=2, stratified=True).assign(dataset(labels))
    for fold in range(2):
        assert sorted(folds.test(0, fold) % 4) == [0, 1, 2, 3]


# What cannot be


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "either test .* or folds"),
        ({"test": 0.2, "folds": 5}, "either test .* or folds"),
        ({"folds": 1}, "folds is 1; give an integer of at least 2"),
        ({"folds": True}, "folds is True"),
        ({"test": 1.0}, "test is 1.0; give a share between 0 and 1"),
        ({"test": 0}, "test is 0; give"),
        ({"test": float("nan")}, "test is nan"),
        ({"test": "half"}, "test is 'half'"),
        ({"folds": 5, "repeats": 0}, "repeats is 0"),
        ({"folds": 5, "seed": 1.5}, "seed is 1.5"),
        ({"folds": 5, "stratified": 1.5}, "stratified is 1.5"),
    ],
)
def test_a_split_that_cannot_be_is_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Split(**spec)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (Split(folds=5), "4 examples are too few for 5 folds; give at most 4"),
        (Split(test=4), "test: 4 of 4 examples leaves none to learn from"),
        (Split(test=9), "test: 9 of 4 examples leaves none to learn from"),
        (Split(test=0.1), "test: 0.1 of 4 examples leaves none to test on"),
        (Split(test=0.9), "test: 0.9 of 4 examples leaves none to learn from"),
        (Split(folds=2, stratified=True), r"'expected': too few examples for 2 folds have the value \"b\" \(1\); each"),
        (Split(test=2, stratified=True), r"test and training have the value \"b\" \(1\); each needs at least 2"),
        (Split(folds=2, stratified="sex"), "no column with a role is called 'sex'; there are input, expected"),
    ],
)
def test_a_dataset_too_small_is_refused_with_what_is_missing(split: Split, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        split.assign(dataset(["a", "a", "a", "b"]))


def test_all_values_that_are_too_rare_are_reported_the_rarest_first() -> None:
    with pytest.raises(SpecError, match=r'values "c" \(1\), "b" \(2\); each needs at least 3'):
        Split(folds=3, stratified=True).assign(dataset(list("aaabbc")))


def test_without_one_expected_value_the_column_must_be_named() -> None:
    several = Dataset.from_rows([{"x": 1, "a": 1, "b": 2}] * 4, input="x", expected=["a", "b"])
    with pytest.raises(SpecError, match="expects several values: a, b; give the name of a column"):
        Split(folds=2, stratified=True).assign(several)
    with pytest.raises(SpecError, match="has no expected value"):
        Split(folds=2, stratified=True).assign(Dataset.from_rows([{"x": 1}] * 4))


# Groups


def grouped(groups: list[Any], labels: list[Any] | None = None) -> Dataset:
    labels = ["x"] * len(groups) if labels is None else labels
    rows = [{"input": i, "expected": y, "group": g} for i, (y, g) in enumerate(zip(labels, groups, strict=True))]
    return Dataset.from_rows(rows, input="input", attributes=["group"])


GROUPS = st.lists(st.one_of(st.none(), st.integers(0, 8)), min_size=2, max_size=40)
GROUPED = st.one_of(
    st.builds(
        Split, folds=st.integers(2, 4), groups=st.just("group"), repeats=st.integers(1, 2), seed=st.integers(0, 9)
    ),
    st.builds(
        Split, test=st.floats(0.1, 0.9), groups=st.just("group"), repeats=st.integers(1, 2), seed=st.integers(0, 9)
    ),
)


def largest(groups: list[Any]) -> int:
    return max((groups.count(group) for group in set(groups) - {None}), default=1)


@given(GROUPS, GROUPED, st.booleans(), st.data())
def test_rows_of_a_group_are_tested_together_and_learnt_from_together(
    groups: list[Any], split: Split, stratified: bool, draw: st.DataObject
) -> None:
    labels = draw.draw(st.lists(st.sampled_from("ab"), min_size=len(groups), max_size=len(groups)))
    folds = assigned(replace(split, stratified=stratified), grouped(groups, labels))
    if folds is None:
        return
    for numbers in folds.numbers:
        for group in set(groups) - {None}:
            assert len({numbers[i] for i, other in enumerate(groups) if other == group}) == 1
        assert (numbers >= 0).any()
        assert split.folds is None or set(numbers) == set(range(split.folds))
        assert split.folds is not None or (numbers < 0).any()


@given(GROUPS, GROUPED)
def test_sizes_differ_by_at_most_the_largest_group(groups: list[Any], split: Split) -> None:
    folds = assigned(split, grouped(groups))
    if folds is None:
        return
    for numbers in folds.numbers:
        if split.folds:
            sizes = np.bincount(numbers, minlength=split.folds)
            assert sizes.max() - sizes.min() <= largest(groups)
        else:
            asked = np.floor((split.test or 0) * len(groups) + 0.5)
            assert abs((numbers == 0).sum() - asked) <= largest(groups)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), min_size=4, max_size=14), st.integers(2, 3))
def test_where_each_group_lies_in_one_stratum_strata_are_as_even_as_groups_are_large(
    sized: list[tuple[int, int]], k: int
) -> None:
    groups = [number for number, (_, size) in enumerate(sized) for _ in range(size)]
    labels = ["ab"[label % 2] for label, size in sized for _ in range(size)]
    folds = assigned(Split(folds=k, groups="group", stratified=True), grouped(groups, labels))
    if folds is None:
        return
    for label in set(labels):
        within = [i for i, other in enumerate(labels) if other == label]
        sizes = np.bincount(folds.numbers[0, within], minlength=k)
        assert sizes.max() - sizes.min() <= largest([groups[i] for i in within])


@given(GROUPS, GROUPED, st.randoms(use_true_random=False))
def test_shuffled_groups_are_tested_in_the_same_folds(groups: list[Any], split: Split, random: Any) -> None:
    order = random.sample(range(len(groups)), len(groups))
    rows = [{"input": i, "expected": "x", "group": group} for i, group in enumerate(groups)]
    data, shuffled = (
        Dataset.from_rows(some, input="input", attributes=["group"]) for some in (rows, [rows[i] for i in order])
    )
    folds, others = assigned(split, data), assigned(split, shuffled)
    if folds is None or others is None:
        assert folds is others
        return
    assert by_example(data, folds) == by_example(shuffled, others)


def test_groups_differ_by_seed_and_repeat() -> None:
    data = grouped([i // 2 for i in range(40)])
    first, other = (Split(folds=4, repeats=2, groups="group", seed=seed).assign(data).numbers for seed in (1, 2))
    assert (first[0] != first[1]).any()
    assert (first[0] != other[0]).any()


def test_groups_that_mix_strata_are_about_as_even_as_those_of_scikit_learn() -> None:
    random = np.random.default_rng(3)
    groups = random.integers(0, 60, 600).tolist()
    labels = random.choice(["a", "b", "c"], 600, p=[0.6, 0.3, 0.1]).tolist()
    folds = Split(folds=5, groups="group", stratified=True).assign(grouped(groups, labels))
    theirs = StratifiedGroupKFold(5, shuffle=True, random_state=0).split(labels, labels, groups)

    def spread(tests: Any) -> float:
        shares = [[np.mean([labels[i] == label for i in test]) for label in "abc"] for test in tests]
        return float(np.std(shares, axis=0).max())

    assert spread(folds.test(0, fold) for fold in range(5)) < 3 * spread(test for _, test in theirs) + 0.01


def test_groups_may_be_the_datasets_clusters() -> None:
    rows = [{"input": i, "expected": "x", "patient": i // 3} for i in range(12)]
    data = Dataset.from_rows(rows, input="input", cluster="patient")
    numbers = Split(folds=2, groups=True).assign(data).numbers[0].reshape(4, 3)
    assert (numbers == numbers[:, :1]).all()


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (Split(folds=2, groups=True), "groups: the dataset has no cluster; give the name of the column"),
        (Split(folds=2, groups="grop"), r"groups: no column with a role is called 'grop' \(did you mean 'group'\?\)"),
        (Split(folds=4, groups="group"), "groups: 'group' has 3 groups, too few for 4 folds"),
        (Split(test=1, groups="group"), "test: 1 cannot be held out without splitting a group of 'group'"),
        (
            Split(folds=3, groups="group", stratified=True),
            r"too few groups of 'group' for 3 folds have the values \"a\" \(2\), \"b\" \(2\); each needs at least 3",
        ),
    ],
)
def test_groups_that_cannot_stay_together_are_refused(split: Split, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        split.assign(grouped([0, 0, 0, 1, 1, 1, 2, 2, 2], list("aaaabbbbb")))


def test_groups_are_a_name_or_a_truth() -> None:
    with pytest.raises(SpecError, match=r"groups is 1.5; give true, false or the name of a column"):
        Split(folds=2, groups=1.5)  # type: ignore[arg-type]


# Lists of rows


@given(LABELS, SPLITS)
def test_folds_that_are_listed_are_the_same_folds(labels: list[str], split: Split) -> None:
    folds = assigned(split, dataset(labels))
    if folds is None:
        return
    faults: list[Any] = []
    again = Folds.from_rows(len(labels), *folds.to_rows(), lambda *fault: faults.append(fault))
    assert faults == []
    assert again.numbers.tolist() == folds.numbers.tolist()
    assert again.count == folds.count


def test_a_list_of_what_is_tested_learns_from_the_rest() -> None:
    listed = [np.array(column) for column in ([1, 0, 2], [True] * 3, [0] * 3, [0, 1, 1])]
    assert Folds.from_rows(4, *listed, lambda *fault: pytest.fail(str(fault))).numbers.tolist() == [[1, 0, 1, -1]]
