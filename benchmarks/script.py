"""The layer sweep as a script of plain transformers that does nothing twice.

python benchmarks/script.py WEIGHTS ROWS OUT

Alone in its process it is what the command is held against. It imports nothing of the product.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer


def interchanged(
    model: nn.Module, base: Mapping[str, Tensor], other: Mapping[str, Tensor], points: Iterable[tuple[int, int]]
) -> Iterator[Tensor]:
    """The logits [rows, V] after `base` with the blocks' outputs from `other` swapped in, by (layer, position).

    One forward keeps the sources of all points, then each has its own.
    """
    points = list(points)
    blocks = model.get_submodule("model.layers")
    source: dict[int, Tensor] = {}

    def keep(layer: int, module: nn.Module, args: object, value: Tensor) -> None:
        source[layer] = value.clone()

    def swap(layer: int, position: int, module: nn.Module, args: object, value: Tensor) -> Tensor:
        changed = value.clone()
        changed[:, position] = source[layer][:, position]
        return changed

    layers = sorted({layer for layer, _ in points})
    handles = [blocks.get_submodule(str(layer)).register_forward_hook(partial(keep, layer)) for layer in layers]
    model(**other, use_cache=False, logits_to_keep=1)
    for handle in handles:
        handle.remove()
    for layer, position in points:
        handle = blocks.get_submodule(str(layer)).register_forward_hook(partial(swap, layer, position))
        logits = model(**base, use_cache=False, logits_to_keep=1).logits[:, -1]
        handle.remove()
        yield logits


def main(weights: str, rows: str, out: str) -> None:
    torch.set_num_threads(1)
    table = json.loads(Path(rows, "bench", "calendar.json").read_bytes())
    tokenizer = AutoTokenizer.from_pretrained(weights)
    model = AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32).eval()
    base, other = (
        {"input_ids": torch.tensor([tokenizer(text)["input_ids"] for text in texts])}
        for texts in ([row["input"] for row in table], [row["counterfactual_inputs"][0] for row in table])
    )
    answers = {
        name: torch.tensor([tokenizer(row[name], add_special_tokens=False)["input_ids"] for row in table])
        for name in ("base_answer", "cf_answer")
    }
    points = [(layer, -1) for layer in range(model.config.num_hidden_layers)]
    with torch.inference_mode(), open(out, "w", newline="") as file:
        lines = csv.writer(file)
        for (layer, _), logits in zip(points, interchanged(model, base, other, points), strict=True):
            for name, ids in answers.items():
                lines.writerow([layer, name, *logits.gather(1, ids)[:, 0].tolist()])


if __name__ == "__main__":
    main(*sys.argv[1:])
