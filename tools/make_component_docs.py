"""Writes the tables of docs/components.md from the registry of components and the rows of families.

`python tools/make_component_docs.py`. A test holds that they are current. Needs no weights: a family is asked by a
small config of its type.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from causalab_mini.checkpoint import config
from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.families import CAPABILITIES
from causalab_mini.checkpoint.resolve import bundled, resolve
from causalab_mini.vocabulary.components import COMPONENTS, Component

PAGE = Path(__file__).parents[1] / "docs" / "components.md"
DEPTH = 4
SIZES: dict[str, Any] = {
    "num_hidden_layers": DEPTH,
    "hidden_size": 16,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 4,
    "linear_value_head_dim": 4,
    "state_size": 4,
    "n_groups": 2,
    "mamba_n_groups": 2,
    "mamba_d_state": 4,
    "mamba_n_heads": 4,
}
"""More than enough for a config of any family."""

FAMILIES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Llama", "llama", {}),
    ("Mistral", "mistral", {}),
    ("Qwen2", "qwen2", {}),
    ("Qwen3", "qwen3", {}),
    ("Gemma-2", "gemma2", {}),
    ("Gemma-3", "gemma3_text", {}),
    ("GPT-2", "gpt2", {}),
    ("GPT-NeoX (sequential)", "gpt_neox", {"use_parallel_residual": False}),
    ("BLOOM", "bloom", {}),
    ("OPT", "opt", {}),
    ("GPT-NeoX (parallel)", "gpt_neox", {}),
    ("OPT-350m (norms after)", "opt", {"do_layer_norm_before": False}),
    ("OLMo-2", "olmo2", {}),
    ("Mixtral", "mixtral", {}),
    ("Qwen2-MoE", "qwen2_moe", {}),
    ("Qwen3-Next", "qwen3_next", {"num_experts": 4}),
    ("Qwen3.5", "qwen3_5_text", {}),
    ("Bamba", "bamba", {"attn_layer_indices": [1, 3]}),
    ("Mamba-2", "mamba2", {"num_heads": 4, "head_dim": 4}),
    ("Mamba", "mamba", {}),
)
"""Every family, and the configs of one that differ in what its blocks have."""


def page() -> str:
    """The page with its tables as they should be."""
    text = PAGE.read_text()
    for name, lines in (("components", components()), ("families", families())):
        before, opening, rest = text.partition(f"<!-- {name} -->\n")
        _, closing, after = rest.partition(f"<!-- end of {name} -->")
        assert closing, f"the page has no place for the table of {name}"
        text = "".join((before, opening, *(f"{line}\n" for line in lines), closing, after))
    return text


def components() -> Iterator[str]:
    """Every component: its value, its shapes, and what a site may say of it."""
    yield "| component | value | at the prefill | at a later step | |"
    yield "|---|---|---|---|---|"
    for component in COMPONENTS:
        words = ["per layer" if component.per_layer else "whole model"]
        words += [f"`{component.width.parts}`"] if component.width.parts else []
        words += ["views"] if component.residual else []
        words += [] if component.writable else ["read only"]
        cells = (f"`{component.name}`", component.summary, component.shape, component.step_shape, "; ".join(words))
        yield f"| {' | '.join(cells)} |"


def families() -> Iterator[str]:
    """Which family has which component: what its last axis counts, – where there is none, * where in some blocks."""
    assert {model_type for _, model_type, _ in FAMILIES} == {row.model_type for row in CAPABILITIES}
    groups: dict[tuple[str, ...], list[str]] = {}
    for label, model_type, own in FAMILIES:
        checkpoint = specimen(model_type, own)
        groups.setdefault(tuple(_cell(checkpoint, component) for component in COMPONENTS), []).append(label)
    yield f"| component | {' | '.join(', '.join(labels) for labels in groups.values())} |"
    yield "|---" * (len(groups) + 1) + "|"
    for number, component in enumerate(COMPONENTS):
        yield f"| `{component.name}` | {' | '.join(column[number] for column in groups)} |"


def specimen(model_type: str, own: dict[str, Any]) -> Checkpoint:
    """A checkpoint of a family as far as its config goes."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps({**SIZES, "model_type": model_type, **own}))
        return replace(resolve(bundled()[0]), config=config.read(Path(folder)), verdict=None)


def _cell(checkpoint: Checkpoint, component: Component) -> str:
    layers = range(checkpoint.depth) if component.per_layer else (None,)
    there = [layer for layer in layers if checkpoint.lacks(component, layer) is None]
    if not there or checkpoint.lacks(component) is not None:
        return "–"
    fixed = " (read)" if component.writable and checkpoint.fixed(component) is not None else ""
    return component.width.value + ("" if len(there) == len(layers) else "*") + fixed


if __name__ == "__main__":
    PAGE.write_text(page())
