"""The tables of docs/components.md are what the registry and the rows of families say."""

from __future__ import annotations

from tools.make_component_docs import FAMILIES, PAGE, page, specimen

from causalab_mini.vocabulary.components import COMPONENTS


def test_the_tables_are_current() -> None:
    assert PAGE.read_text() == page(), "run: python tools/make_component_docs.py"


def test_every_component_is_some_familys() -> None:
    has = {name for _, model_type, own in FAMILIES for name in specimen(model_type, own).components()}
    assert has == set(COMPONENTS.names())
