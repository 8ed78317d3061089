"""Writes of one model that would undo each other, as far as only the rows tell.

What a document says of fixed positions is found by `spec.check`; here the windows of every row are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from causalab_mini.checkpoint.text import Text
from causalab_mini.plan.nodes import Place, Write
from causalab_mini.vocabulary.reasons import Reason


def contradictions(
    writes: Sequence[Write], rows: Sequence[Text], *, bare: bool = False
) -> Iterator[tuple[Write, Write, int]]:
    """Pairs of writes that both set one value, with the first row in which they share a token.

    `bare`: embeddings are what enters the first block.
    """
    absolute = [write for write in writes if write.mechanism.absolute]
    for first, second in combinations(absolute, 2):
        if not _values(first.place, bare) & _values(second.place, bare) or _apart(first, second):
            continue
        for row, text in enumerate(rows):
            if _cells(first, row, text) & _cells(second, row, text):
                yield first, second, row
                break


def shared(first: Place, second: Place) -> str:
    """What two writes both set, in words."""
    one, other = first.spelled(), second.spelled()
    return f"one value of {one} and {other}" if one != other and (first.layers or second.layers) else other


def _values(place: Place, bare: bool) -> set[tuple[str, int | None]]:
    """Names for the values of a place, one for each of its layers."""
    return {_value(one, bare) for one in place.each()}


def _value(place: Place, bare: bool) -> tuple[str, int | None]:
    """A name for the value at a place: what leaves a block is what enters the next."""
    name, layer = place.identity, place.layer
    if name == "embeddings" and bare:
        return "block_input", 0
    if name == "block_output" and layer is not None:
        return "block_input", layer + 1
    return name, layer


def _apart(first: Write, second: Write) -> bool:
    """Whether two writes are limited to different coordinates of one value, along orthonormal directions."""
    one, other = first.place.columns, second.place.columns
    if one is not None and other is not None and not set(one) & set(other):
        return True
    straight = first.space is None or first.space.node.orthonormal
    if not straight or first.space != second.space:
        return False
    if first.space is None:
        ours, theirs = _coordinates(first), _coordinates(second)
        return ours is not None and theirs is not None and not ours & theirs
    if one != other or first.features is None or second.features is None:
        return False
    return not set(first.features) & set(second.features)


def _coordinates(write: Write) -> set[int] | None:
    """The entries of the value itself that a write sets, or None for all of them."""
    columns, features = write.place.columns, write.features
    if features is None:
        return None if columns is None else set(columns)
    return set(features) if columns is None else {columns[feature] for feature in features if feature < len(columns)}


def _cells(write: Write, row: int, text: Text) -> set[tuple[str, int]]:
    """The columns and steps a write touches in a row; step 0 is the prompt's last column."""
    window = write.windows[row]
    if isinstance(window, Reason):
        return set()
    if not write.pos.generated:
        return {("column", column) for column in window}
    return {("column", len(text.ids) - 1) if step == 0 else ("step", step) for step in window}
