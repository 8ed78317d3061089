"""Where a model of a family that has no row may keep its parts: by the names of its modules, and by what they hand out.

A guess is what the self-test is given to prove or refuse. What no name and no value speaks for is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import cast

import torch
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel

from causalab_mini.engine.families import Family
from causalab_mini.errors import ModelUnavailable

NORMS = ("norm", "ln_f", "final_layernorm", "final_layer_norm", "final_norm", "norm_f")
ATTENTIONS = ("self_attn", "attn", "attention", "self_attention")
MIXINGS = ("o_proj", "out_proj", "c_proj", "dense", "wo")
MLPS = ("mlp", "feed_forward", "ffn")
ACTIVATIONS = ("act_fn", "act", "activation_fn", "activation")
DOWNS = ("down_proj", "c_proj", "fc2", "fc_out", "dense_4h_to_h", "w2")
CLOSE = 1e-4


def guess(model: PreTrainedModel, model_type: str) -> Family:
    """The parts of `model` that can be told. `ModelUnavailable` where there are no blocks, embeddings or head."""
    depth = getattr(model.config.get_text_config(), "num_hidden_layers", None)
    lists = ((path, part) for path, part in model.named_modules() if isinstance(part, nn.ModuleList))
    blocks = next((path for path, part in lists if len(part) == depth), "")
    embeddings, head = (_path(model, part) for part in (model.get_input_embeddings(), model.get_output_embeddings()))
    for what, path in (("list of blocks", blocks), ("embeddings", embeddings), ("head", head)):
        if not path:
            message = f"the family '{model_type}' is not known, and no {what} can be found in its model"
            raise ModelUnavailable(message)
    root, first = blocks.rpartition(".")[0], model.get_submodule(f"{blocks}.0")
    attention, mlp = _named(first, ATTENTIONS), _named(first, MLPS)
    named = Family(
        model_type,
        type(model).__name__,
        embeddings=embeddings,
        blocks=blocks,
        attention=attention,
        attention_added="",
        mixing=_inside(first, attention, MIXINGS),
        middle="",
        mlp=mlp,
        mlp_added="",
        activation=_inside(first, mlp, ACTIVATIONS),
        down=_inside(first, mlp, DOWNS),
        router="",
        norm=f"{root}.{_named(model.get_submodule(root), NORMS)}".strip(".") if root else "",
        head=head,
    )
    return _arranged(model, named)


@dataclass
class _Block:
    """What one block was given and handed out [1, T, d], and its modules by name."""

    entering: Tensor
    leaving: Tensor
    given: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    made: dict[str, Tensor] = field(default_factory=dict[str, Tensor])


def _arranged(model: PreTrainedModel, family: Family) -> Family:
    """The family with the modules whose outputs add up to what a block adds, and the one between them."""
    first = model.get_submodule(f"{family.blocks}.0")
    norms = [name for name, _ in first.named_children() if "norm" in name or name.startswith("ln")]
    added = [name for name in (family.attention, family.mixing, *norms) if name]
    grown = [name for name in (family.mlp, family.down, *norms) if name]
    seen = _probed(model, family, {*added, *grown})
    pairs = [(one, other) for one in added for other in grown if one != other]
    pair = next((pair for pair in pairs if all(_sums(block, *pair) for block in seen)), None)
    if pair is None:
        return family
    after = [name for name in (*norms, family.mlp) if name and all(_between(block, name, pair[0]) for block in seen)]
    return replace(family, attention_added=pair[0], mlp_added=pair[1], middle=after[0] if after else "")


def _sums(block: _Block, attention: str, mlp: str) -> bool:
    parts = [block.made.get(attention), block.made.get(mlp)]
    return all(part is not None for part in parts) and _close(
        block.entering + sum(cast(list[Tensor], parts)), block.leaving
    )


def _between(block: _Block, name: str, attention: str) -> bool:
    return name in block.given and _close(block.entering + block.made[attention], block.given[name])


def _close(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool((one - other).abs().max() <= CLOSE * other.abs().max())


def _probed(model: PreTrainedModel, family: Family, names: Iterable[str]) -> list[_Block]:
    """Every block on three tokens, in double precision where numbers are compared."""
    ids = torch.arange(1, 4, device=model.device)[None]
    found: list[_Block] = []
    with ExitStack() as hooks, torch.no_grad():
        for block in cast(nn.ModuleList, model.get_submodule(family.blocks)):
            seen = _Block(torch.empty(0), torch.empty(0))
            found.append(seen)
            places = [("", block), *((name, block.get_submodule(name)) for name in names if _has(block, name))]
            for name, module in places:
                hooks.callback(module.register_forward_pre_hook(_given(seen, name), with_kwargs=True).remove)
                hooks.callback(module.register_forward_hook(_made(seen, name)).remove)
        try:
            model(input_ids=ids, use_cache=False)
        except Exception as error:
            message = f"the family '{family.model_type}' is not known, and its model does not run on three tokens"
            raise ModelUnavailable(f"{message}: {type(error).__name__}: {error}") from error
    return found


def _given(seen: _Block, name: str) -> Callable[[nn.Module, Sequence[object], dict[str, object]], None]:
    def before(_: nn.Module, args: Sequence[object], kwargs: dict[str, object]) -> None:
        value = _tensor(args[0] if args else next(iter(kwargs.values()), None))
        if value is not None and name:
            seen.given[name] = value
        elif value is not None:
            seen.entering = value

    return before


def _made(seen: _Block, name: str) -> Callable[[nn.Module, object, object], None]:
    def after(_: nn.Module, given: object, out: object) -> None:
        value = _tensor(out[0] if isinstance(out, tuple) else out)
        if value is not None and name:
            seen.made[name] = value
        elif value is not None:
            seen.leaving = value

    return after


def _tensor(value: object) -> Tensor | None:
    """A value as [1, T, w] in double precision, however many axes the model gives it; a copy."""
    if not isinstance(value, Tensor):
        return None
    return value.detach().double().reshape(1, -1, value.shape[-1]).clone()


def _path(model: nn.Module, part: nn.Module | None) -> str:
    return next((path for path, module in model.named_modules() if module is part), "")


def _named(module: nn.Module, names: Sequence[str]) -> str:
    children = dict(module.named_children())
    return next((name for name in names if name in children), "")


def _inside(block: nn.Module, part: str, names: Sequence[str]) -> str:
    name = _named(block.get_submodule(part), names) if part else ""
    return f"{part}.{name}" if name else ""


def _has(block: nn.Module, path: str) -> bool:
    try:
        block.get_submodule(path)
    except AttributeError:
        return False
    return True
