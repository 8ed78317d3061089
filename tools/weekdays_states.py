"""The recurrent state of a Gated DeltaNet layer, as training interchanges it."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers.models.qwen3_5 import modeling_qwen3_5 as modeling

NAME = "torch_chunk_gated_delta_rule"
CHUNK = 32  # columns at most; a sentence has half as many

Rule = Callable[..., tuple[Tensor, Tensor | None]]


@contextmanager
def short_chunks() -> Generator[None]:
    """Lets the delta rule go over a text in equal chunks, without padding to the usual 64."""
    usual: Rule = getattr(modeling, NAME)

    def rule(query: Tensor, *others: Tensor, **options: Any) -> tuple[Tensor, Tensor | None]:
        length = query.shape[1]
        return usual(query, *others, **options, chunk_size=-(-length // -(-length // CHUNK)))

    setattr(modeling, NAME, rule)
    try:
        yield
    finally:
        setattr(modeling, NAME, usual)


@contextmanager
def states_interchanged(mixer: torch.nn.Module, columns: Tensor) -> Generator[None]:
    """Lets each row of a batch go on after its column with the state that the row beside it has after its own.

    Rows are neighbours in twos. Gradients flow through the state.
    """
    usual: Rule = getattr(modeling, NAME)
    partners = torch.arange(len(columns)) ^ 1

    def rule(query: Tensor, key: Tensor, value: Tensor, g: Tensor, beta: Tensor, **options: Any) -> Any:
        later = (torch.arange(key.shape[1]) > columns[:, None])[..., None]

        def over(columns: Tensor, **more: Any) -> tuple[Tensor, Tensor | None]:
            # A column that neither decays the state nor writes to it is passed over.
            return usual(query, key, value, g=g * columns, beta=beta * columns, **(options | more))

        before, state = over(~later, output_final_state=True)
        assert state is not None
        after, _ = over(later, initial_state=state[partners])
        return torch.where(later[..., None], after, before), None

    def enter(_mixer: torch.nn.Module, _inputs: Any) -> None:
        setattr(modeling, NAME, rule)

    def leave(_mixer: torch.nn.Module, _inputs: Any, _output: Any) -> None:
        setattr(modeling, NAME, usual)

    handles = mixer.register_forward_pre_hook(enter), mixer.register_forward_hook(leave)
    try:
        yield
    finally:
        setattr(modeling, NAME, usual)
        for handle in handles:
            handle.remove()
