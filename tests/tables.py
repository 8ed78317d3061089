"""Generators of small tables of words."""

from __future__ import annotations

from hypothesis import strategies as st
from tests.words import LETTERS

Draw = st.DrawFn


@st.composite
def tables(draw: Draw) -> list[dict]:
    """Rows of unequal length that often share a beginning, or the whole text, with another row or role."""
    stems = draw(st.lists(st.lists(st.sampled_from(LETTERS), min_size=1, max_size=5), min_size=1, max_size=2))

    def text() -> str:
        stem = draw(st.sampled_from(stems))
        return " ".join([*stem, *draw(st.lists(st.sampled_from(LETTERS), max_size=3))])

    count = draw(st.integers(1, 4))
    texts = [text() for _ in range(count)]
    rows = []
    for number in range(count):
        answer, other = draw(st.lists(st.sampled_from(LETTERS), min_size=2, max_size=2, unique=True))
        rows.append(
            {
                "example_id": f"row {number}",
                "input": texts[number],
                "counterfactual_inputs": [draw(st.sampled_from(texts)) if draw(st.booleans()) else text()],
                "word": draw(st.sampled_from(LETTERS)),
                "answer": f" {answer}",
                "other": draw(st.sampled_from([f" {other}", f" {other}", ""])) if number else f" {other}",
            }
        )
    return rows
