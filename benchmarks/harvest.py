"""The residual stream at the last token of 512 short sentences, at every layer."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.calls import padded
from benchmarks.common import Outcome, World
from benchmarks.race import Job, main

ROWS = 32
"""How many rows the loops take at once."""


def batches(world: World) -> Iterator[dict[str, Tensor]]:
    """The rows as calls, in dataset order. Not even the head's last position is wanted, so it is not computed."""
    rows = world.tokens["base"]
    for start in range(0, len(rows), ROWS):
        yield {**padded(rows[start : start + ROWS]), "use_cache": False}


def together(kept: list[list[Tensor]]) -> Outcome:
    """The values [rows, d] of every layer."""
    return {f"layer={layer}/activations": torch.cat(values) for layer, values in enumerate(kept)}


@torch.inference_mode()
def plain(world: World) -> Outcome:
    """Batch after batch through the blocks."""
    stem = world.plain.get_submodule("model")
    kept: list[list[Tensor]] = [[] for _ in range(world.checkpoint.depth)]

    def keep(layer: int):
        return lambda module, args, value: kept[layer].append(value[:, -1].clone())

    blocks = stem.get_submodule("layers").children()
    handles = [block.register_forward_hook(keep(layer)) for layer, block in enumerate(blocks)]
    for call in batches(world):
        stem(**call)
    for handle in handles:
        handle.remove()
    return together(kept)


@torch.inference_mode()
def traced(world: World) -> Outcome:
    """The same in nnsight, a trace for every batch."""
    root, depth = world.traced, world.checkpoint.depth
    kept: list[list[Tensor]] = [[] for _ in range(depth)]
    for batch in batches(world):
        call = {**batch, "logits_to_keep": 1}
        with root.trace(**call):
            values = [root.model.layers[layer].output[:, -1].clone() for layer in range(depth)].save()
        for layer, value in enumerate(values):
            kept[layer].append(value)
    return together(kept)


JOB = Job("harvest", "every layer's last token of 512 sentences", 0.85, plain, traced)

if __name__ == "__main__":
    main(JOB)
