"""Why a row may have no value: a closed set, the same words in every table."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a row is not measured: a closed set."""

    ALIGNMENT_MISSING = "alignment_missing"
    ALIGNMENT_AMBIGUOUS = "alignment_ambiguous"
    OUT_OF_RANGE = "out_of_range"
    EMPTY_CELL = "empty_cell"
    WRITE_SKIPPED = "write_skipped"
    NON_FINITE = "non_finite"
