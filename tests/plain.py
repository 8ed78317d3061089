"""The reference the product is held against: one row alone, unpadded, plain torch hooks, every step recomputed whole.

Imports nothing of the product. Patterns of attention are the sides "scores" and "probs" of an attention module, [H, T]
for w. A *token* is an index into the row's prompt and what it generated; step k of a decode sees token P − 1 + k, P the
prompt's length. Nothing is cached, so an edit at a token acts in every recompute; but where recurrent states are looked
at or written, the row is fed token by token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import torch
from tests import attention
from torch import Tensor, nn

STATE = "state:"


@dataclass(frozen=True)
class Edit:
    """Replace a module's value [w] at one token by `change` of it. `module` "" is the logits the model returns.

    "state:2" is no module: the recurrent state of block 2 after the token, heads [K, U] one after the other.
    """

    module: str
    side: str
    token: int
    change: Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Look:
    """Read a module's value [w] at one token, after the edits."""

    name: str
    module: str
    side: str
    token: int


@dataclass(frozen=True)
class Rollout:
    """`ids` [N] generated, `logits` [N, V] each was chosen from (or [1, V] after the prompt when N is 0), `values`."""

    ids: list[int]
    logits: Tensor
    values: dict[str, Tensor]


def run(
    model: nn.Module,
    prompt: Sequence[int],
    edits: Iterable[Edit] = (),
    looks: Iterable[Look] = (),
    steps: int = 0,
    held: Iterable[int] = (),
    forced: Sequence[int] | None = None,
    pick: Callable[[list[int], Tensor], int] | None = None,
) -> Rollout:
    """Run one row. `steps` tokens are chosen greedily, `held` ids never; or they are `forced`.

    `pick` chooses instead, given what was said and logits [V].
    """
    edits, looks, held = list(edits), list(looks), list(held)
    ids, rows, values = list(prompt), [], {}
    states = any(item.module.startswith(STATE) for item in [*edits, *looks])
    walk = _Walk(model, edits, looks) if states else None
    for step in range(max(steps, 1)):
        logits, seen = forward(model, ids, edits, looks) if walk is None else walk.on(ids)
        rows.append(logits[-1])
        for name, value in seen.items():
            values.setdefault(name, value)
        if steps and pick is not None:
            ids.append(pick(ids[len(prompt) :], logits[-1]))
        elif steps:
            choice = logits[-1].clone()
            choice[held] = -torch.inf
            ids.append(int(choice.argmax()) if forced is None else forced[step])
    return Rollout(ids[len(prompt) :], torch.stack(rows), values)


def forward(
    model: nn.Module, ids: Sequence[int], edits: Iterable[Edit] = (), looks: Iterable[Look] = ()
) -> tuple[Tensor, dict[str, Tensor]]:
    """One forward of one row: logits [T, V], and the values looked at; tokens past the row's end are passed over."""
    edits = [edit for edit in edits if edit.token < len(ids)]
    looks = [look for look in looks if look.token < len(ids)]
    return _called(model, ids, edits, looks, {"use_cache": False})


class _Walk:
    """The same token by token, so that there is a state after each of them; goes on where it stopped."""

    def __init__(self, model: nn.Module, edits: Sequence[Edit], looks: Sequence[Look]) -> None:
        from transformers.cache_utils import DynamicCache

        self.model, self.edits, self.looks = model, edits, looks
        self.cache, self.rows, self.values = DynamicCache(config=model.config), [], {}

    def on(self, ids: Sequence[int]) -> tuple[Tensor, dict[str, Tensor]]:
        """Logits [T, V] and values after all of `ids`, which begin with those of before."""
        for token in range(len(self.rows), len(ids)):
            self._step(token, ids[token])
        return torch.cat(self.rows), self.values

    def _step(self, token: int, fed: int) -> None:
        here = [[replace(item, token=0) for item in items if item.token == token] for items in (self.edits, self.looks)]
        inside = [[item for item in items if not item.module.startswith(STATE)] for items in here]
        at = {} if "mamba" in self.model.config.model_type else {"position_ids": torch.tensor([[token]])}
        logits, seen = _called(self.model, [fed], *inside, {"use_cache": True, "cache": self.cache, **at})
        self.rows.append(logits)
        self.values.update(seen)
        for item in (item for items in here for item in items if item.module.startswith(STATE)):
            layer = int(item.module.removeprefix(STATE))
            state = laid_out(self.model, self.cache.layers[layer].recurrent_states[0])
            if isinstance(item, Edit):
                state.copy_(item.change(state.flatten().clone()).view(state.shape))
            else:
                self.values[item.name] = state.flatten().clone()


def laid_out(model: nn.Module, state: Tensor) -> Tensor:
    """A recurrent state as [lanes, heads, K, U], whatever the family's own layout is; the same memory."""
    kind = model.config.model_type
    return state[..., None] if kind == "mamba" else state.transpose(-1, -2) if kind in ("mamba2", "bamba") else state


def _called(
    model: nn.Module, ids: Sequence[int], edits: Sequence[Edit], looks: Sequence[Look], options: dict[str, object]
) -> tuple[Tensor, dict[str, Tensor]]:
    values: dict[str, Tensor] = {}
    with torch.no_grad(), ExitStack() as hooks:
        items = [*edits, *looks]
        patterns = [item for item in items if item.side in attention.SIDES]
        if patterns:
            hooks.enter_context(attention.written_out(model, patterns, values))
        for module, side in sorted({(one.module, one.side) for one in items if one.module and one not in patterns}):
            at = [item for item in items if (item.module, item.side) == (module, side)]
            hooks.enter_context(_hook(model.get_submodule(module), side, at, values))
        out = model(input_ids=torch.tensor([list(ids)]), **options)
        logits = _act(out.logits, [item for item in [*edits, *looks] if not item.module], values)
    return logits[0], values


def generate(
    model: nn.Module, ids: Tensor, mask: Tensor, steps: int, held: Sequence[int] = ()
) -> tuple[Tensor, list[Tensor]]:
    """`model.generate` on a left-padded batch [L, P], greedily and for exactly `steps` tokens, with a neutral config.

    Returns ids [L, steps] and the raw logits [L, V] of every step.
    """
    from transformers import GenerationConfig

    config = GenerationConfig(
        do_sample=False,
        min_new_tokens=steps,
        max_new_tokens=steps,
        eos_token_id=list(held) or None,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_logits=True,
    )
    out = model.generate(input_ids=ids, attention_mask=mask, generation_config=config)
    return out.sequences[:, ids.shape[1] :], list(out.logits)


def pad(rows: Sequence[Sequence[int]], pad_id: int = 0) -> tuple[Tensor, Tensor]:
    """Left-padded ids and mask [L, P] of unequal rows."""
    width = max(map(len, rows))
    ids = [[pad_id] * (width - len(row)) + list(row) for row in rows]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(ids), torch.tensor(mask)


@contextmanager
def _hook(module: nn.Module, side: str, items: list[Edit | Look], values: dict[str, Tensor]):
    def before(_: nn.Module, args: tuple, kwargs: dict):
        return (_act(args[0], items, values), *args[1:]), kwargs

    def after(_: nn.Module, args: tuple, out: object):
        return (_act(out[0], items, values), *out[1:]) if isinstance(out, tuple) else _act(out, items, values)

    if side == "input":
        handle = module.register_forward_pre_hook(before, with_kwargs=True)
    else:
        handle = module.register_forward_hook(after)
    try:
        yield
    finally:
        handle.remove()


def _act(hidden: Tensor, items: list[Edit | Look], values: dict[str, Tensor]) -> Tensor:
    """Edits in their order, then looks, on [1, T, w], or [T, w] where a block works on it so."""
    if hidden.ndim == 2:
        return _act(hidden[None], items, values)[0]
    hidden = hidden.clone()
    for item in items:
        if isinstance(item, Edit):
            hidden[0, item.token] = item.change(hidden[0, item.token].clone())
        else:
            values[item.name] = hidden[0, item.token].clone()
    return hidden
