"""The equations of the self-test, one for each component: None where it holds, else how it fails.

Values are [3, w], of the tokens a, b, a. A proof that finds nothing to compare with raises `NotShown`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import cast

import torch
from torch import Tensor, nn

from causalab_mini.engine import recurred
from causalab_mini.engine.recurred import Walk
from causalab_mini.engine.seen import NotShown, Seen
from causalab_mini.vocabulary.components import COMPONENTS


def nothing(_: Seen) -> str | None:
    """The proof of what there is no equation for."""
    raise NotShown("there is no equation for it")


def stream(seen: Seen) -> str | None:
    """What leaves a block enters the next one."""
    entering, leaving = dict(seen.of("block_input")), dict(seen.of("block_output"))
    depth = seen.checkpoint.depth
    for layer in range(depth - 1):
        if not seen.close(leaving[layer], entering[layer + 1]):
            return f"what leaves block {layer} is not what enters block {layer + 1}"
    if depth == 1:
        raise NotShown("there is one block alone")
    return None


def embedded(seen: Seen) -> str | None:
    """One token has one embedding, wherever it stands."""
    value = seen.at("embeddings", None)
    if torch.equal(value[0], value[1]):
        raise NotShown("two tokens have one embedding")
    if not torch.equal(value[0], value[2]):
        return "it is not what the token alone decides"
    return None


def added(seen: Seen) -> str | None:
    """block_input + attention_output + mlp_output = block_output, of sequential and of parallel blocks."""
    for layer, value in seen.of("block_output"):
        mixed = "linear_attention_output" if _is_recurrent(seen, layer) else "attention_output"
        total = seen.at("block_input", layer) + seen.at(mixed, layer)
        if dict(seen.values.get("mlp_output", {})):
            total = total + seen.at("mlp_output", layer)
        if not seen.close(total, value):
            return f"block_input + {mixed} + mlp_output is not block_output in block {layer}: {seen.off(total, value)}"
    return None


def _is_recurrent(seen: Seen, layer: int | None) -> bool:
    own = seen.checkpoint.config.recurrent
    return own is not None and layer in own.layers


def middle(seen: Seen) -> str | None:
    """block_input + attention_output = block_mid."""
    for layer, value in seen.of("block_mid"):
        mixed = "linear_attention_output" if _is_recurrent(seen, layer) else "attention_output"
        total = seen.at("block_input", layer) + seen.at(mixed, layer)
        if not seen.close(total, value):
            return f"block_input + {mixed} is not block_mid in block {layer}: {seen.off(total, value)}"
    return None


def attention_norm(seen: Seen) -> str | None:
    """Some module of the block makes it of block_input."""
    for layer, value in seen.of("attention_input_norm"):
        if not _made(seen, layer, value, ("block_input",)):
            return f"no module of block {layer} makes what enters attention of block_input"
    return None


def mlp_norm(seen: Seen) -> str | None:
    """Some module of the block makes it of the residual stream: after attention, or, in a parallel block, before."""
    for layer, value in seen.of("mlp_input_norm"):
        if not _made(seen, layer, value, ("block_mid", "block_input")):
            seen.at("block_mid", layer)
            return f"no module of block {layer} makes what enters the MLP of the residual stream"
    return None


def mlp_entered(seen: Seen) -> str | None:
    """It is made of the residual stream, or is the residual stream itself."""
    middles = seen.values.get("block_mid", {})
    if all(layer in middles and seen.close(middles[layer], value) for layer, value in seen.of("mlp_input")):
        return None
    if mlp_norm(seen) is not None:
        raise NotShown("neither the residual stream nor a norm of it was seen to be what enters the MLP")
    return None


def _made(seen: Seen, layer: int | None, value: Tensor, sources: tuple[str, ...]) -> bool:
    entering = [seen.values[name][layer] for name in sources if layer in seen.values.get(name, {})]
    norms = [module for module in seen.block(layer).children() if "norm" in type(module).__name__.lower()]
    return any(seen.close(norm(each[None])[0], value) for norm in norms for each in entering)


def handed_on(seen: Seen) -> str | None:
    """The first token sees itself alone: each head hands on the value it shares."""
    width = seen.checkpoint.width(COMPONENTS.get("attention_value"))
    if any(value.shape[-1] != width for _, value in seen.of("attention_value")):
        raise NotShown("its values are not as wide as the config makes them")
    for layer, _ in seen.of("attention_z"):
        z, value = seen.heads("attention_z", layer)[:, 0], seen.heads("attention_value", layer)[:, 0]
        shared = value.repeat_interleave(z.shape[0] // value.shape[0], 0) if z.shape[0] % value.shape[0] == 0 else value
        if seen.close(z, shared):
            continue
        if z.shape == shared.shape and bool(((z / shared > 0) & (z / shared < 1)).all()):
            raise NotShown("heads hand on less than their values, as behind a gate")
        return f"the first token's heads do not hand on its values in block {layer}"
    return None


def divided(seen: Seen) -> str | None:
    """The same, and how many heads there are: by which share a value or, where none do, by their scores."""
    failed = handed_on(seen)
    if failed is None and seen.checkpoint.heads == seen.checkpoint.kv_heads:
        attended(seen)
    return failed


def attended(seen: Seen) -> str | None:
    """Softmax of scaled products of queries and keys, applied to values, is what the heads hand on."""
    if handed_on(seen) is not None:
        raise NotShown("values and heads do not fit, by which queries and keys are shown")
    for layer, _ in seen.of("attention_query"):
        z, key = seen.heads("attention_z", layer), seen.heads("attention_key", layer)
        query, value = seen.heads("attention_query", layer), seen.heads("attention_value", layer)
        group = query.shape[0] // key.shape[0]
        key, value = key.repeat_interleave(group, 0), value.repeat_interleave(group, 0)
        products = query @ key.transpose(1, 2)
        ahead = torch.ones(3, 3, device=z.device).triu(1).bool()
        if not any(
            seen.close(scores.masked_fill(ahead, -torch.inf).softmax(-1) @ value, z)
            for scores in _scores(seen, layer, products)
        ):
            raise NotShown("scaled products of queries and keys, and nothing else, do not give what the heads hand on")
    return None


def _scores(seen: Seen, layer: int | None, products: Tensor) -> Iterator[Tensor]:
    attention = seen.block(layer).get_submodule(seen.network.family.attention)
    cap = cast(float | None, getattr(attention, "attn_logit_softcapping", None))
    # Some families bias scores by how far keys are, with a function of their own for it.
    biases = getattr(sys.modules[type(attention).__module__], "build_alibi_tensor", None)
    said = [getattr(attention, name, None) for name in ("scaling", "inv_norm_factor")]
    usual = [1.0, 1 / math.sqrt(seen.checkpoint.head_dim)]
    for scale in [*(float(scale) for scale in said if isinstance(scale, int | float)), *usual]:
        yield products * scale
        if cap is not None:
            yield torch.tanh(products * scale / cap) * cap
        if biases is not None:
            yield products * scale + biases(torch.ones(1, 3, device=products.device), len(products), products.dtype)


def projected(seen: Seen) -> str | None:
    """The last projection makes of it what the MLP hands out."""
    family = seen.network.family
    for layer, value in seen.of("mlp_neuron_output"):
        block = seen.block(layer)
        out = cast(Tensor, block.get_submodule(family.down)(value))
        if family.mlp_added not in (family.mlp, family.down) and family.mlp_added:
            out = cast(Tensor, block.get_submodule(family.mlp_added)(out))
        elif not family.mlp_added:
            out, wanted = out, cast(Tensor, block.get_submodule(family.mlp)(seen.at("mlp_input", layer)[None])[0])
            if not seen.close(out, wanted):
                return f"the last projection does not make of it what the MLP hands out in block {layer}"
            continue
        if not seen.close(out, seen.at("mlp_output", layer)):
            return f"the last projection does not make of it what the MLP hands out in block {layer}"
    return None


def activated(seen: Seen) -> str | None:
    """It is what enters the last projection, or that divided by a projection of what enters the MLP."""
    for layer, value in seen.of("mlp_activation"):
        neurons = seen.at("mlp_neuron_output", layer)
        if seen.close(value, neurons):
            continue
        entering = seen.at("mlp_input", layer)
        parts = seen.block(layer).get_submodule(seen.network.family.mlp).children()
        fit = [part for part in parts if isinstance(part, nn.Linear) and part.in_features == entering.shape[-1]]
        made = [cast(Tensor, part(entering)) for part in fit]
        gates = [piece for out in made for piece in ((out,) if out.shape == value.shape else out.chunk(2, -1))]
        if not any(seen.close(value * gate, neurons) for gate in gates):
            raise NotShown("no projection of what enters the MLP makes of it what enters the last one")
    return None


def routed(seen: Seen) -> str | None:
    """The chosen experts are the likeliest, their weights in proportion to their probabilities."""
    for layer, logits in seen.of("router_logits"):
        weights, indices = seen.at("expert_weights", layer).float(), seen.at("expert_indices", layer)
        probabilities = logits.float().softmax(-1)
        top = probabilities.topk(indices.shape[-1], dim=-1)
        if not torch.equal(top.indices, indices):
            return f"the chosen experts of block {layer} are not those of the largest logits"
        if not seen.close(weights / weights.sum(-1, keepdim=True), top.values / top.values.sum(-1, keepdim=True)):
            return f"the experts' weights in block {layer} are not in proportion to their probabilities"
    return None


def final(seen: Seen) -> str | None:
    """The final norm makes it of what leaves the last block."""
    norm = seen.network.model.get_submodule(seen.network.family.norm)
    last = seen.at("block_output", seen.checkpoint.depth - 1)
    if not seen.close(cast(Tensor, norm(last[None]))[0], seen.at("ln_final", None)):
        return "the final norm does not make it of what leaves the last block"
    return None


def views(seen: Seen) -> str | None:
    """Norm, head, scale and cap of what leaves the last block are the logits the model returns."""
    last = seen.at("block_output", seen.checkpoint.depth - 1)
    logits, wanted = seen.network.unembed(last), seen.at("logits", None)
    if logits.shape != wanted.shape or not seen.close(logits, wanted):
        far = seen.off(logits, wanted) if logits.shape == wanted.shape else "another width"
        return f"the final norm and the head do not make the model's logits of what leaves the last block: {far}"
    return None


def kept(seen: Seen) -> str | None:
    """The recurrence makes the state in the cache of what it was given."""
    return _recurrence(
        seen, lambda walk, _: recurred.kept(seen.network, walk), "the recurrence does not give the state"
    )


def entered(seen: Seen) -> str | None:
    """The same over one step, from the state before it."""
    return _recurrence(
        seen, lambda walk, _: recurred.entered(seen.network, walk), "a step does not go on from the state"
    )


def read_out(seen: Seen) -> str | None:
    """Queries applied to states are what the heads hand on."""
    read = "queries applied to states are not what the heads hand on"
    return _recurrence(seen, lambda walk, layer: recurred.read_out(seen.network, walk, layer), read)


def _recurrence(seen: Seen, sides: Callable[[Walk, int], tuple[Tensor, Tensor]], failed: str) -> str | None:
    if not seen.walks:
        raise NotShown("its recurrence could not be listened to")
    for layer, walk in seen.walks.items():
        one, other = sides(walk, layer)
        if not seen.close(one, other):
            return f"{failed} in block {layer}: {seen.off(one, other)}"
    return None


PROOFS: dict[str, Callable[[Seen], str | None]] = {
    "embeddings": embedded,
    "block_input": stream,
    "attention_input_norm": attention_norm,
    "attention_key": attended,
    "attention_value": divided,
    "attention_query": attended,
    "attention_z": divided,
    "attention_premix": divided,
    "attention_output": added,
    "linear_attention_output": added,
    "linear_attention_state": kept,
    "linear_attention_state_in": entered,
    **dict.fromkeys((f"linear_attention_{part}" for part in ("key", "value", "decay", "beta")), kept),
    **dict.fromkeys((f"linear_attention_{part}" for part in ("query", "z")), read_out),
    "block_mid": middle,
    "mlp_input_norm": mlp_norm,
    "mlp_input": mlp_entered,
    "router_logits": routed,
    "expert_weights": routed,
    "expert_indices": routed,
    "mlp_activation": activated,
    "mlp_neuron_output": projected,
    "mlp_output": added,
    "block_output": stream,
    "ln_final": final,
}
