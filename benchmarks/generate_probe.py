"""The interchange at one layer, then three greedy tokens; the probability of the other answer at each of the steps."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache

from benchmarks.calls import following, greedy, padded
from benchmarks.common import Outcome, World
from benchmarks.race import Job, main


def answered(world: World, logits: list[Tensor], tokens: list[Tensor]) -> Outcome:
    """Every point's probabilities and ids, from the logits [rows, V] and tokens [rows, 1] of every step."""
    answer = world.answers["cf_answer"][:, None]
    ids = torch.cat(tokens, 1)
    found: Outcome = {}
    for label, axes in world.points.items():
        found[f"{label}/p_cf"] = logits[axes["step"]].softmax(-1).gather(1, answer)[:, 0]
        found[f"{label}/patched.generated"] = ids
    return found


@torch.inference_mode()
def plain(world: World) -> Outcome:
    """The source, a prefill with the swap, two steps: all three points are read from one rollout."""
    model, layer = world.plain, world.document["sites"]["residual"]["layers"]
    block = model.get_submodule(f"model.layers.{layer}")
    base, other = padded(world.tokens["base"]), padded(world.tokens["counterfactual"])
    source: list[Tensor] = []
    handle = block.register_forward_hook(lambda module, args, value: source.append(value[:, -1].clone()))
    model(**other, use_cache=False, logits_to_keep=1)
    handle.remove()

    def swap(module: nn.Module, args: object, value: Tensor) -> Tensor:
        changed = value.clone()
        changed[:, -1] = source[0]
        return changed

    cache, mask = DynamicCache(), base["attention_mask"]
    handle = block.register_forward_hook(swap)
    logits = [model(**base, cache=cache, use_cache=True, logits_to_keep=1).logits[:, -1]]
    handle.remove()
    tokens = [greedy(logits[0], world.banned)]
    for _ in range(2):
        mask = torch.cat((mask, torch.ones_like(mask[:, :1])), 1)
        call = following(tokens[-1], mask)
        logits.append(model(**call, cache=cache, use_cache=True, logits_to_keep=1).logits[:, -1])
        tokens.append(greedy(logits[-1], world.banned))
    return answered(world, logits, tokens)


@torch.inference_mode()
def traced(world: World) -> Outcome:
    """The same in nnsight, a trace for every call."""
    root, layer = world.traced, world.document["sites"]["residual"]["layers"]
    base = padded(world.tokens["base"])
    other = {**padded(world.tokens["counterfactual"]), "use_cache": False, "logits_to_keep": 1}
    with root.trace(**other):
        source = root.model.layers[layer].output[:, -1].clone().save()
    mask = base["attention_mask"]
    call = {**base, "cache": DynamicCache(), "use_cache": True, "logits_to_keep": 1}
    with root.trace(**call):
        changed = root.model.layers[layer].output.clone()
        changed[:, -1] = source
        root.model.layers[layer].output = changed
        last = root.output.logits[:, -1].save()
    logits, tokens = [last], [greedy(last, world.banned)]
    for _ in range(2):
        mask = torch.cat((mask, torch.ones_like(mask[:, :1])), 1)
        call = {**call, **following(tokens[-1], mask)}
        with root.trace(**call):
            last = root.output.logits[:, -1].save()
        logits.append(last)
        tokens.append(greedy(last, world.banned))
    return answered(world, logits, tokens)


JOB = Job("generate_probe", "an interchange, then 3 greedy tokens, each probed", 0.6, plain, traced)

if __name__ == "__main__":
    main(JOB)
