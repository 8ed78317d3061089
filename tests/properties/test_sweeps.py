"""Sweeps of generated documents: as many points as the product says, each the document with its values put in."""

from __future__ import annotations

import copy
import json
import re
from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from causalab_mini.spec.sweep import expand

SCALARS = st.one_of(st.integers(-99, 99), st.sampled_from(["a", "b c", "ü", ""]), st.booleans(), st.none())
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("pqr"), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def swept(draw: st.DrawFn) -> tuple[dict, list[tuple[str, list[list[tuple[str, int]]]]]]:
    """A document, and its axes in reading order: name, and per setting what each wrapper's place becomes."""
    axes = draw(st.lists(st.integers(1, 4), min_size=0, max_size=3))
    wrappers = [i for i, _ in enumerate(axes)] + draw(st.lists(st.sampled_from(range(3)), max_size=2))
    wrappers = [i for i in wrappers if i < len(axes)]
    document: dict = {}
    places: dict[int, list[tuple[str, list[int]]]] = {}
    for n, i in enumerate(draw(st.permutations(wrappers))):
        values = draw(st.lists(st.integers(-50, 50), min_size=axes[i], max_size=axes[i], unique=True))
        key = f"k{n}"
        document[f"part{n}"] = {"fixed": draw(TREES), key: {"sweep": values, "as": f"axis{i}"}, "more": [draw(TREES)]}
        places.setdefault(i, []).append((key, values))
    settings_of = [
        (f"axis{i}", [[(key, values[j]) for key, values in found] for j in range(axes[i])])
        for i, found in places.items()
    ]
    return document, settings_of


def substituted(document: dict, setting: list[tuple[str, int]]) -> dict:
    result = copy.deepcopy(document)
    for part in result.values():
        for key, value in setting:
            if key in part:
                part[key] = value
    return result


@given(swept())
@settings(max_examples=150, deadline=None)
def test_points_are_the_product_in_order(case: tuple[dict, list]):
    document, axes = case
    before = json.dumps(document)
    expansion = expand(document)
    points = list(expansion.points())
    assert len(points) == expansion.count == prod(len(choices) for _, choices in axes)
    wanted = [[]]
    for _, choices in axes:
        wanted = [[*setting, *choice] for setting in wanted for choice in choices]
    assert [point.value for point in points] == [substituted(document, setting) for setting in wanted]
    assert json.dumps(document) == before


@given(swept())
@settings(max_examples=100, deadline=None)
def test_labels_are_unique_and_are_directory_names(case: tuple[dict, list]):
    document, axes = case
    labels = [point.label for point in expand(document).points()]
    assert len(set(labels)) == len(labels)
    for label in labels:
        assert [part.split("=")[0] for part in label.split(",") if part] == [name for name, _ in axes]
        assert re.fullmatch(r"[\w.+=,-]*", label)


@given(swept())
@settings(max_examples=100, deadline=None)
def test_the_first_axis_is_the_slowest(case: tuple[dict, list]):
    document, axes = case
    points = list(expand(document).points())
    assert [point.choice for point in points] == sorted(point.choice for point in points)
    assert all([name for name, _ in point.axes] == [name for name, _ in axes] for point in points)


@given(st.integers(-60, 60), st.integers(-60, 60), st.integers(-7, 7).filter(bool))
def test_a_range_is_the_list_of_its_integers(start: int, stop: int, step: int):
    values = list(range(start, stop, step))
    if not values:
        return
    by_range = expand({"a": {"x": {"sweep": {"range": [start, stop, step]}}}})
    by_list = expand({"a": {"x": {"sweep": values}}})
    assert by_range.count == len(values)
    assert list(by_range.points()) == list(by_list.points())
