"""Whatever a document is turned into, it loads or is refused: with paths, lines and sentences, never a traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from causalab_mini.errors import Refusal
from causalab_mini.spec.load import load

SHIPPED = [json.loads(path.read_text()) for path in sorted(Path("documents/v2").glob("*.json"))]
WORDS = ("swap", "base", "original", "lm_head", "logits", "patch", "v_cf", "identity", "score", "sweep", "generated")
VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-5, 5), st.floats(-3, 3), st.sampled_from(WORDS), st.text(max_size=3)
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("index", "sweep", "as", "range", "ref", "reads", "site", "pos", "x y")), inner
        )
    ),
    max_leaves=5,
)


def places(tree: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield (*path, key)
            yield from places(value, (*path, key))


@st.composite
def mutated(draw: st.DrawFn) -> dict:
    """A shipped document with a few places replaced, renamed or gone."""
    document = json.loads(json.dumps(draw(st.sampled_from(SHIPPED))))
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(document))
        if not found:
            break
        *above, last = draw(st.sampled_from(found))
        here = document
        for part in above:
            here = here[part]
        how = draw(st.sampled_from(("put", "put", "drop", "rename", "swap")))
        if how == "put":
            here[last] = draw(VALUES)
        elif how == "drop":
            del here[last]
        elif isinstance(here, dict):
            key = draw(st.sampled_from(WORDS)) if how == "swap" else f"{last}x"
            here[key] = here.pop(last)
    return document


def told(text: bytes) -> Refusal | None:
    try:
        load(text, "trial.json")
    except Refusal as refusal:
        return refusal
    return None


@given(mutated())
@settings(max_examples=150, deadline=None)
def test_a_mutated_document_loads_or_is_refused(document: dict):
    refusal = told(json.dumps(document, indent=1).encode())
    for problem in refusal.problems if refusal else ():
        assert problem.message
        assert problem.line is not None
        assert "invalid" not in problem.message.lower().replace('"invalid', "")


@given(st.sampled_from(SHIPPED), st.data())
@settings(max_examples=100, deadline=None)
def test_a_mutilated_text_loads_or_is_refused(document: dict, data: st.DataObject):
    text = bytearray(json.dumps(document, indent=1).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=3))
    refusal = told(bytes(text))
    assert refusal is None or all(problem.message for problem in refusal.problems)


@given(st.binary(max_size=40))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_refused(text: bytes):
    assert told(text) is not None
