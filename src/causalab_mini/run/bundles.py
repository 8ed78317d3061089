"""The tensors a step saves, with the metadata that makes them readable alone."""

from __future__ import annotations

import json
from collections.abc import Sequence

import torch
from torch import Tensor

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.plan.nodes import Decoding, Publish
from causalab_mini.results.records import Bundle
from causalab_mini.run.score import Reading
from causalab_mini.run.values import Continuation
from causalab_mini.run.widths import fixed_width


def generated_bundle(
    name: str, continuations: Sequence[Continuation], decoding: Decoding, pad_id: int, example_ids: Sequence[str]
) -> Bundle:
    """The ids every row generated: int64 [rows, N]; where rows end by themselves, padded and with their lengths.

    Where settings or sampling stood between logits and ids, the raw logits' most likely ids as `<name>.argmax`.
    """
    tensors = {name: _padded([continuation.ids for continuation in continuations], decoding.steps, pad_id)}
    if decoding.chosen:
        wants = [continuation.wants for continuation in continuations]
        tensors[f"{name}.argmax"] = _padded(wants, decoding.steps, pad_id)
    if decoding.uneven:
        tensors[f"{name}.lengths"] = torch.tensor([len(continuation.ids) for continuation in continuations])
    metadata = {"dims": json.dumps(["row", "step"]), "example_ids": json.dumps(list(example_ids))}
    return Bundle(name, tensors, metadata)


def _padded(rows: Sequence[Sequence[int]], steps: int, pad_id: int) -> Tensor:
    return torch.tensor([[*ids, *[pad_id] * (steps - len(ids))] for ids in rows], dtype=torch.long)


def output_bundle(publish: Publish, tensors: dict[str, Tensor], reading: Reading, checkpoint: Checkpoint) -> Bundle:
    """A published output: float32, its site, its rows and the rows without a value."""
    read = reading.read(publish.read)
    located = reading.located(publish.read, next(iter(read.place.layers), None))
    missing = {
        example_id: str(value.value)
        for example_id, value in zip(reading.example_ids, located, strict=True)
        if not isinstance(value.value, Tensor)
    }
    ragged = publish.reduce == "none" and fixed_width(read, reading.forward(publish.read).decoding) is None
    layers = ["layer"] if read.place.layers else []
    rows = [*layers, *([] if publish.reduce == "mean" else ["token"] if ragged else ["row"])]
    if publish.reduce == "pca":
        return Bundle(publish.name, tensors, {**_told(publish, reading, missing), **dict(publish.stamp)})
    value = ["head", "key"] if read.place.component.pattern else ["feature"]
    several = tensors[publish.name].ndim > len(rows) + len(value)
    dims = [*rows, *(["step" if read.pos.generated else "position"] if several else []), *value]
    return Bundle(publish.name, tensors, {"dims": json.dumps(dims), **_told(publish, reading, missing)})


def _told(publish: Publish, reading: Reading, missing: dict[str, str]) -> dict[str, str]:
    """What an output was made of."""
    read = reading.read(publish.read)
    parts = {"layers": read.place.layers or None, "heads": read.place.heads, "units": read.place.units}
    return {
        "example_ids": json.dumps(list(reading.example_ids)),
        "missing": json.dumps(missing),
        "site": read.place.spelled(),
        **{name: ",".join(map(str, numbers)) for name, numbers in parts.items() if numbers is not None},
        "position": read.pos.compact(),
        "reduce": publish.reduce,
        "view": read.view,
        "featurizer": read.featurizer,
    }
