"""Noise of five strengths added at one layer, at the last prompt token and at every one of 20 greedy steps."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache

from benchmarks.calls import following, greedy, padded
from benchmarks.common import Outcome, World
from benchmarks.race import Job, main
from causalab_mini.run.noise import noise

STEPS = 20


def pushes(world: World) -> list[Tensor]:
    """The noise [rows, d] of every step, the same at all strengths."""
    width = world.checkpoint.hidden
    rows = [row["example_id"] for row in world.table]
    return [torch.cat([noise(0, row, step, 1, width) for row in rows]) for step in range(STEPS)]


def entropy(logits: Tensor) -> Tensor:
    """The entropy [rows] of `logits` [rows, V], in nats."""
    logs = logits.log_softmax(-1)
    return -(logs.exp() * logs).sum(-1)


@torch.inference_mode()
def plain(world: World) -> Outcome:
    """A rollout for every strength."""
    model, layer = world.plain, world.document["sites"]["residual"]["layers"]
    block, push, found = model.get_submodule(f"model.layers.{layer}"), pushes(world), Outcome()
    base = padded(world.tokens["base"])
    for label, axes in world.points.items():
        call, mask, cache, tokens = base, base["attention_mask"], DynamicCache(), list[Tensor]()
        for step in range(STEPS):

            def add(module: nn.Module, args: object, value: Tensor) -> Tensor:
                changed = value.clone()
                changed[:, -1] += axes["strength"] * push[step]  # noqa: B023  # gone before the next step
                return changed

            handle = block.register_forward_hook(add)
            logits = model(**call, cache=cache, use_cache=True, logits_to_keep=1).logits[:, -1]
            handle.remove()
            tokens.append(greedy(logits, world.banned))
            mask = torch.cat((mask, torch.ones_like(mask[:, :1])), 1)
            call = following(tokens[-1], mask)
        found[f"{label}/entropy"] = entropy(logits)
        found[f"{label}/steered.generated"] = torch.cat(tokens, 1)
    return found


@torch.inference_mode()
def traced(world: World) -> Outcome:
    """The same in nnsight, a trace for every call."""
    root, layer = world.traced, world.document["sites"]["residual"]["layers"]
    push, found, base = pushes(world), Outcome(), padded(world.tokens["base"])
    for label, axes in world.points.items():
        call = {**base, "cache": DynamicCache(), "use_cache": True, "logits_to_keep": 1}
        mask, tokens = base["attention_mask"], list[Tensor]()
        for step in range(STEPS):
            added = axes["strength"] * push[step]
            with root.trace(**call):
                changed = root.model.layers[layer].output.clone()
                changed[:, -1] += added
                root.model.layers[layer].output = changed
                logits = root.output.logits[:, -1].save()
            tokens.append(greedy(logits, world.banned))
            mask = torch.cat((mask, torch.ones_like(mask[:, :1])), 1)
            call = {**call, **following(tokens[-1], mask)}
        found[f"{label}/entropy"] = entropy(logits)
        found[f"{label}/steered.generated"] = torch.cat(tokens, 1)
    return found


JOB = Job("steering_strengths", "five strengths at every one of 20 greedy steps", 0.4, plain, traced)

if __name__ == "__main__":
    main(JOB)
