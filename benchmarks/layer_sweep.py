"""The residual stream at the last token interchanged at every layer; the logits of both answers."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.calls import padded
from benchmarks.common import Outcome, World
from benchmarks.race import Job, main
from benchmarks.script import interchanged


@torch.inference_mode()
def plain(world: World) -> Outcome:
    """The sources once, then a forward for every point."""
    base, other = padded(world.tokens["base"]), padded(world.tokens["counterfactual"])
    places = [(axes["layer"], axes.get("position", -1)) for axes in world.points.values()]
    found: Outcome = {}
    for label, logits in zip(world.points, interchanged(world.plain, base, other, places), strict=True):
        found |= answered(world, label, logits)
    return found


@torch.inference_mode()
def traced(world: World) -> Outcome:
    """The same in nnsight: one trace for the sources, one for every point."""
    root, points = world.traced, world.points
    base = {**padded(world.tokens["base"]), "use_cache": False, "logits_to_keep": 1}
    other = {**padded(world.tokens["counterfactual"]), "use_cache": False, "logits_to_keep": 1}
    layers = sorted({axes["layer"] for axes in points.values()})
    source: dict[int, Tensor] = {}
    with root.trace(**other):
        for layer in layers:
            source[layer] = root.model.layers[layer].output.clone().save()
    found: Outcome = {}
    for label, axes in points.items():
        layer, position = axes["layer"], axes.get("position", -1)
        with root.trace(**base):
            changed = root.model.layers[layer].output.clone()
            changed[:, position] = source[layer][:, position]
            root.model.layers[layer].output = changed
            logits = root.output.logits[:, -1].save()
        found |= answered(world, label, logits)
    return found


def answered(world: World, label: str, logits: Tensor) -> Outcome:
    """Both answers' logits at a point, of `logits` [rows, V]."""
    columns = {"of_base": "base_answer", "of_cf": "cf_answer"}
    return {f"{label}/{name}": logits.gather(1, world.answers[of][:, None])[:, 0] for name, of in columns.items()}


JOB = Job("layer_sweep", "an interchange at every layer", 0.1, plain, traced)

if __name__ == "__main__":
    main(JOB)
