"""No sweep and no write: what the product adds to one forward."""

from __future__ import annotations

import torch

from benchmarks.calls import padded
from benchmarks.common import Outcome, World
from benchmarks.layer_sweep import answered
from benchmarks.race import Job, main


@torch.inference_mode()
def plain(world: World) -> Outcome:
    """One forward."""
    return answered(
        world, "", world.plain(**padded(world.tokens["base"]), use_cache=False, logits_to_keep=1).logits[:, -1]
    )


@torch.inference_mode()
def traced(world: World) -> Outcome:
    """One trace."""
    root = world.traced
    call = {**padded(world.tokens["base"]), "use_cache": False, "logits_to_keep": 1}
    with root.trace(**call):
        logits = root.output.logits[:, -1].save()
    return answered(world, "", logits)


JOB = Job("plain_forward", "one forward, no sweep, no write", 1.1, plain, traced)

if __name__ == "__main__":
    main(JOB)
