"""What a position selects in one row."""

from __future__ import annotations

from causalab_mini.vocabulary.reasons import Reason

Window = tuple[int, ...] | Reason
"""Indices in ascending order, or the reason there are none."""
