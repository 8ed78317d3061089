"""What both engines do at a stop: take the tensor out of a module's value, edit, keep, and put it back.

Knows how transformers' modules wrap a tensor: bare, first of a tuple, or as the logits of the model's output.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.utils import logging as transformers_logging
from transformers.utils.generic import ModelOutput

from causalab_mini.engine.contract import Inputs, Visit
from causalab_mini.errors import CausalabError, EngineFailure, OutOfMemory

Value = Tensor | tuple[object, ...] | ModelOutput


def arguments(inputs: Inputs, *, attends: bool = True) -> dict[str, object]:
    """The keyword arguments of the model for one call; a model that does not attend is not told where columns are."""
    told: dict[str, object] = {"attention_mask": inputs.mask, "position_ids": inputs.positions}
    return {
        "input_ids": inputs.ids,
        **(told if attends else {"attention_mask": inputs.mask[:, -inputs.ids.shape[1] :]}),
        "cache": inputs.cache,
        "use_cache": inputs.cache is not None,
        "logits_to_keep": _head(inputs),
    }


def _head(inputs: Inputs) -> int | Tensor:
    """Which columns the head computes, in the model's words.

    At a prefill a run of last columns goes by its length: that is a view, as under `generate`, and picking the same
    columns by index is a copy whose products differ in the last bit. A call that starts in the middle of a text has no
    such model, and there the copy is several times faster.
    """
    width, columns = inputs.ids.shape[1], inputs.head.tolist()
    prefill = inputs.past == 0
    last = bool(columns) and columns == list(range(width - len(columns), width))
    return len(columns) if last and (prefill or len(columns) == width) else inputs.head


def stop(visit: Visit, value: Value, kept: dict[str, Tensor], columns: int) -> Value | None:
    """Act on `value` as `visit` says: edit, then keep into `kept`. Returns the replacement, None without an edit.

    `columns`: T, by which a value of all lanes' columns one under the other [L·T, w] is told apart.
    """
    found = inner(value, visit.item)
    tensor = found if found.ndim != 2 else found.unflatten(0, (-1, columns))
    edited = tensor
    if visit.edit is not None:
        edited = visit.edit(tensor)
        if edited.shape != tensor.shape or edited.dtype != tensor.dtype or edited.device != tensor.device:
            raise EngineFailure(
                f"an edit at the {visit.side} of '{visit.module}' turned {_kind(tensor)} into {_kind(edited)}"
            )
    for name, keep in visit.keep.items():
        kept[name] = _owned(keep(edited), edited)
    return None if visit.edit is None else outer(value, edited.view(found.shape), visit.item)


def inner(value: Value, item: int = 0) -> Tensor:
    """The tensor a module's value is about: element `item` of a tuple."""
    found: object = value
    if isinstance(value, ModelOutput):
        found = returned(value, "logits")
    elif isinstance(value, tuple):
        found = value[item] if item < len(value) else None
    if not isinstance(found, Tensor):
        raise EngineFailure(f"a module handed over {type(value).__name__}, which holds no tensor in front")
    return found


def returned(output: ModelOutput, name: str) -> object:
    """What a model returned under `name`; named in an `EngineFailure` where it returned none."""
    there = {key: part for key, part in output.items() if part is not None}
    if name not in there:
        listed = ", ".join(there) or "nothing"
        raise EngineFailure(f"the model was asked for '{name}', and its {type(output).__name__} has: {listed}")
    return there[name]


def outer(value: Value, tensor: Tensor, item: int = 0) -> Value:
    """`value` with `tensor` in the place `inner` looks at; `value` itself is left as it is."""
    if isinstance(value, ModelOutput):
        return cast(Value, replace(cast(CausalLMOutputWithPast, value), logits=cast(torch.FloatTensor, tensor)))
    return (*value[:item], tensor, *value[item + 1 :]) if isinstance(value, tuple) else tensor


def check(visits: Sequence[Visit]) -> None:
    """Raise when two visits stop at the same place or two keeps have one name."""
    places = [(visit.module, visit.side, visit.item) for visit in visits]
    if len(set(places)) < len(places):
        raise EngineFailure("two visits at one side of one module")
    names = [name for visit in visits for name in visit.keep]
    if len(set(names)) < len(names):
        raise EngineFailure("two kept values of one name")


@contextmanager
def quiet() -> Generator[None]:
    """Keep transformers from logging and drawing bars, and put both back."""
    verbosity, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()


@contextmanager
def border() -> Generator[None]:
    """Turn a foreign error that leaves the block into an `EngineFailure`, once, its cause kept."""
    try:
        with quiet():
            yield
    except CausalabError:
        raise
    except Exception as error:
        kind = OutOfMemory if _is_memory(error) else EngineFailure
        raise kind(f"{type(error).__name__}: {error}") from error


def _is_memory(error: Exception) -> bool:
    """Whether `error` says that memory ran out; the CPU and MPS allocators say so by words alone."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or (
        isinstance(error, RuntimeError) and any(word in str(error) for word in ("out of memory", "allocate memory"))
    )


def _owned(kept: Tensor, source: Tensor) -> Tensor:
    """`kept`, cloned if it still is memory of `source`, which the model goes on using."""
    shared = kept.untyped_storage().data_ptr() == source.untyped_storage().data_ptr()
    return kept.clone() if shared else kept


def _kind(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {tensor.dtype} on {tensor.device}"
