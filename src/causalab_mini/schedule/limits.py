"""How large a call may be, and what one costs beside the columns it runs."""

from __future__ import annotations

from dataclasses import dataclass

CALL_COLUMNS = 32
"""Columns that take about as long as one more call of a model 576 wide: every call reads all weights."""

WEIGHTS_COLUMNS = 28
"""Of these, what reading the weights costs, whatever the size of the model."""


def call_columns(hidden: int) -> int:
    """How many columns take about as long as one more call of a model `hidden` wide.

    What a call costs by itself, block by block, is the same for all sizes; what a column costs grows with the square
    of the width. So a small model had better run few calls, and a large one few columns.
    """
    by_itself = (CALL_COLUMNS - WEIGHTS_COLUMNS) * 576**2
    return WEIGHTS_COLUMNS + by_itself // hidden**2


CELLS = 12_500_000
"""Numbers a call may hold at once: where a processor is busy already, a larger call only takes memory."""

SHARE = 0.25
"""Of the memory that is free, what one call may take: the rest is for what an estimate leaves out."""


@dataclass(frozen=True)
class Limits:
    """Bounds on one call.

    `lanes`: `--batch-size`. `cells`: numbers that are alive at once because of it: a block's activations, the head's
    logits and, for lanes that decode, the cache.
    """

    lanes: int | None = None
    cells: int = CELLS

    @classmethod
    def within(cls, lanes: int | None, free_bytes: int, item_bytes: int, *, accelerator: bool) -> Limits:
        """The bounds for a device with `free_bytes`: on an accelerator as large as fits, else no more than helps."""
        fits = int(free_bytes * SHARE) // item_bytes
        return cls(lanes, fits if accelerator else min(fits, CELLS))


@dataclass(frozen=True)
class Shape:
    """What of a model decides how much a call holds, and what calls may do.

    `column`: numbers a block works on for one column; `cache`: entries one column leaves in the caches of all layers.
    `price`: columns that cost as much as a further call. `resumes`: whether columns can go on from a cache; `stepwise`:
    or one at a time; `recurrent`: whether a state is handed on in place of columns; `enters`: whether lanes can begin
    in the middle of the network. `window`: the columns to which some attention is limited.
    """

    depth: int
    vocab: int
    column: int
    cache: int
    price: int = CALL_COLUMNS
    resumes: bool = True
    stepwise: bool = False
    recurrent: bool = False
    enters: bool = True
    window: int | None = None

    def cells(self, *, heads: int, width: int, decode: int) -> int:
        """The numbers one lane of a call holds: `heads` columns of logits, `width` columns, `decode` steps.

        Logits count twice, as they are computed and as they are kept; where nothing is decoded they are all kept at
        once, and what is made of them on the way to a score counts as well.
        """
        kept = decode + width if decode > 1 else 0
        copies = 2 if decode > 1 else 5
        return copies * heads * self.vocab + width * self.column + kept * self.cache
