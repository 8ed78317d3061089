"""How many tokens of a row a read is of."""

from __future__ import annotations

from causalab_mini.plan.nodes import Decoding, Read


def fixed_width(read: Read, decoding: Decoding) -> int | None:
    """How many tokens of every row a read has, or None where rows may differ."""
    if read.pos.scope is not None:
        return None
    if not (read.pos.generated and read.pos.all):
        return read.pos.width
    return None if decoding.uneven else decoding.steps - (read.pos.token == "input")
