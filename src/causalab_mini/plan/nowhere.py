"""Writes that land nowhere on some rows: because of their own position, or of their operand's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from causalab_mini.frames.window import Window
from causalab_mini.plan.problems import Problems
from causalab_mini.plan.rows import listed
from causalab_mini.vocabulary.reasons import Reason


def refuse(
    own: Sequence[Window], landed: Sequence[Window], operand: str, example_ids: Sequence[str], problems: Problems
) -> None:
    """Refuse rows that stay unwritten, at the position or at the operand that is the cause.

    `own`: where the write's position lands, by row; `landed`: the same where the operand has a value. `operand`: its
    name and position in words.
    """
    skip = 'give "missing": "skip" to leave such rows unwritten and unmeasured'
    rows = list(zip(example_ids, own, landed, strict=True))
    lost = {example_id: window.value for example_id, window, _ in rows if isinstance(window, Reason)}
    if lost:
        message = f"the write lands nowhere on {len(lost)} of {len(own)} rows ({_shown(lost)})"
        problems.add(message, skip, at="pos")
    lost = {
        example_id: window.value
        for example_id, before, window in rows
        if isinstance(window, Reason) and not isinstance(before, Reason)
    }
    if lost:
        problems.add(
            f"the operand {operand} has no value on {len(lost)} of {len(own)} rows, so the write lands nowhere there "
            f"({_shown(lost)})",
            f"let the operand be at a position that every row has, or {skip}",
            at="operand",
        )


def _shown(lost: Mapping[str, str]) -> str:
    return listed([f"'{example_id}': {reason}" for example_id, reason in lost.items()])
