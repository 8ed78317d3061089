"""The tokens at the positions an axis runs over: what to write at a map's position axis.

Knows plans and the tokenizer; refuses to know pictures.
"""

from __future__ import annotations

from collections.abc import Iterator

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.plan.nodes import Experiment, Forward, Point, Read, Write
from causalab_mini.report.charts import word
from causalab_mini.vocabulary.reasons import Reason

Key = tuple[object, ...]


def axis_tokens(experiment: Experiment, checkpoint: Checkpoint) -> dict[str, dict[str, str]]:
    """For every axis along which a read or write moves token by token in the prompt, the token at each value.

    Where rows differ it is the first row's, and an ellipsis.
    """
    names = dict.fromkeys(name for point in experiment.points for name, _ in point.axes)
    found = {name: _along(experiment, name, checkpoint) for name in names}
    return {name: tokens for name, tokens in found.items() if tokens}


def _along(experiment: Experiment, axis: str, checkpoint: Checkpoint) -> dict[str, str] | None:
    """The tokens of the first write, or else read, that stands on one token and moves with this axis alone."""
    moved: dict[Key, dict[str, tuple[Forward, tuple[int, ...]] | None]] = {}
    for point in experiment.points:
        value = word(dict(point.axes).get(axis))
        for key, forward, tap in _taps(point):
            at = _columns(tap)
            seen = moved.setdefault(key, {})
            known = seen.setdefault(value, None if at is None else (forward, at))
            if known is not None and known[1] != at:
                seen[value] = None
    for _, places in sorted(moved.items(), key=lambda item: Write not in item[0]):
        known = {value: place for value, place in places.items() if place is not None}
        if len(known) == len(places) > 1 and len({at for _, at in known.values()}) == len(known):
            return {value: _token(forward, at, checkpoint) for value, (forward, at) in known.items()}
    return None


def _taps(point: Point) -> Iterator[tuple[Key, Forward, Read | Write]]:
    for observe in point.plan.observes():
        for forward in observe.forwards:
            for tap in (*forward.writes, *forward.reads):
                yield (observe.path, forward.model, forward.role, type(tap), tap.name), forward, tap


def _columns(tap: Read | Write) -> tuple[int, ...] | None:
    """The one column of each row, where it is one in every row."""
    if tap.pos.generated or any(isinstance(window, Reason) or len(window) != 1 for window in tap.windows):
        return None
    return tuple(window[0] for window in tap.windows if not isinstance(window, Reason))


def _token(forward: Forward, columns: tuple[int, ...], checkpoint: Checkpoint) -> str:
    found = dict.fromkeys(
        checkpoint.token_text(text.ids[column]).strip()
        for text, column in zip(forward.batch.rows, columns, strict=True)
    )
    first = next(iter(found)) or "␣"
    return first if len(found) == 1 else f"‹{first} …›"
