"""What one look at a model's generation found, row by row: the ids, why they end, and the choice at every step.

One shape for every family and every way of choosing; nothing of it outlives the look.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.plan.generation import forward_name
from causalab_mini.plan.nodes import Forward, Observe
from causalab_mini.results.records import Observed


@dataclass(frozen=True)
class Candidate:
    """A token and how likely the raw logits make it."""

    id: int
    text: str
    probability: float


@dataclass(frozen=True)
class Step:
    """One choice: the id emitted, the raw logits' most likely one, and the first few candidates."""

    step: int
    emitted: int
    text: str
    argmax: int
    top: tuple[Candidate, ...]


@dataclass(frozen=True)
class Said:
    """What one model said after one row. `stop`: eos, length, or the end of a forced text."""

    forward: str
    row: int
    example_id: str
    ids: tuple[int, ...]
    stop: str
    steps: tuple[Step, ...]


def said(observe: Observe, observed: Observed, checkpoint: Checkpoint, k: int) -> Iterator[Said]:
    """Every row of every model whose logits the step publishes, with `k` candidates a step."""
    tensors = {name: tensor for bundle in observed.bundles for name, tensor in bundle.tensors.items()}
    looked = {publish.read for publish in observe.outputs}
    for forward in observe.forwards:
        for read in forward.reads:
            if read.name not in looked:
                continue
            name = observe.generated[observe.forwards.index(forward)]
            rows = _rows(tensors[read.name], tensors.get(f"{read.name}.lengths"))
            for row, (logits, ids) in enumerate(zip(rows, tensors[name].tolist(), strict=True)):
                yield _said(forward, row, observe.example_ids[row], logits, ids[: len(logits)], checkpoint, k)


def _rows(logits: Tensor, lengths: Tensor | None) -> Sequence[Tensor]:
    """Logits [rows, N, V], [rows, V] where N is 1, or flat [tokens, V] with lengths, as one [n, V] a row."""
    if lengths is not None:
        return logits.split(lengths.tolist())
    return list(logits if logits.ndim == 3 else logits[:, None])


def _said(
    forward: Forward, row: int, example_id: str, logits: Tensor, ids: Sequence[int], checkpoint: Checkpoint, k: int
) -> Said:
    likely = logits.softmax(-1).topk(min(k, logits.shape[-1]), dim=-1)
    steps = tuple(
        Step(
            step,
            token,
            checkpoint.token_text(token),
            int(logits[step].argmax()),
            tuple(
                Candidate(int(one), checkpoint.token_text(int(one)), float(p))
                for one, p in zip(likely.indices[step], likely.values[step], strict=True)
            ),
        )
        for step, token in enumerate(ids)
    )
    decoding = forward.decoding
    ended = bool(ids) and ids[-1] in checkpoint.eos_ids and decoding.stops
    stop = "forced" if decoding.forced is not None else "eos" if ended else "length"
    return Said(forward_name(forward), row, example_id, tuple(ids), stop, steps)
