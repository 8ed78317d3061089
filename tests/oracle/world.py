"""A model, its tokenizer and its rows, as plain transformers and JSON have them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import torch
from tests.oracle import parts
from tests.plain import STATE
from torch import Tensor, nn

PARTS = {
    "gpt2": ("transformer.wte", "transformer.h", "attn", "transformer.ln_f", "lm_head"),
    "gpt_neox": ("gpt_neox.embed_in", "gpt_neox.layers", "attention", "gpt_neox.final_layer_norm", "lm_head"),
}
LLAMA = ("model.embed_tokens", "model.layers", "self_attn", "model.norm", "lm_head")
BYTES = [*range(33, 127), *range(161, 173), *range(174, 256)]
BYTES += [byte for byte in range(256) if byte not in BYTES]
BYTE_OF = {chr(byte if place < 188 else 256 + place - 188): byte for place, byte in enumerate(BYTES)}


@dataclass(frozen=True)
class Prompt:
    """A row's text, its ids with the prefix in front, and each token's characters."""

    text: str
    ids: list[int]
    spans: list[tuple[int, int]]
    prefix: int
    turns: list[tuple[str, int, int]] = field(default_factory=list)


class World:
    """A model, its tokenizer and a data root."""

    def __init__(self, folder: Path, model: nn.Module, root: Path) -> None:
        from transformers import PreTrainedTokenizerFast

        self.model, self.root = model, root
        own = folder / "generation_config.json"
        self.generation: dict = json.loads(own.read_text()) if own.is_file() else {}
        self.tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        config, made = model.config, model.generation_config
        eos = [config.eos_token_id, self.tokenizer.eos_token_id, made.eos_token_id if made else None]
        self.eos = sorted({i for ids in eos if ids is not None for i in (ids if isinstance(ids, list) else [ids])})
        pads = [self.tokenizer.pad_token_id, config.pad_token_id, min(self.eos, default=0)]
        self.pad = next(i for i in pads if i is not None)
        self.parts = PARTS.get(config.model_type, LLAMA)
        self.rows = cache(self._rows)
        self._texts, self._chats = cache(self._prompt), cache(self._chat)

    def _rows(self, ref: str) -> list[dict]:
        table, _, split = ref.partition("#")
        rows = json.loads((self.root / f"{table}.json").read_text())
        return [row for row in rows if not split or row["split"] == split]

    def prompt(self, cell: str | list[dict]) -> Prompt:
        """What a role's cell becomes: a text, or a list of messages."""
        return self._texts(cell) if isinstance(cell, str) else self._chats(json.dumps(cell))

    def _chat(self, cell: str) -> Prompt:
        """Contents are looked for one after the other, as the template puts them."""
        messages, start = json.loads(cell), len(self.tokenizer("")["input_ids"])
        text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
        spans = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        turns, here = [], 0
        for message in messages:
            said = message["content"].strip()
            at = text.index(said, text.index(message["role"], here) + len(message["role"]))
            here = at + len(said)
            turns.append((message["role"], at, here))
        return Prompt(text, ids, spans, start if ids[:start] == self.tokenizer("")["input_ids"] else 0, turns)

    def _prompt(self, text: str) -> Prompt:
        start = len(self.tokenizer("")["input_ids"])
        own = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        whole = self.tokenizer(text)["input_ids"]
        return Prompt(text, whole, [(0, 0)] * start + own["offset_mapping"], start)

    def spot(self, site: dict) -> tuple[str, str]:
        """The module and side of a site."""
        embeddings, blocks, attention, norm, _ = self.parts
        layer = site.get("layers")
        block = f"{blocks}.{layer[0] if isinstance(layer, list) else layer}"
        within = {
            "block_input": (block, "input"),
            "attention_output": (f"{block}.{attention}", "output"),
            "mlp_output": (f"{block}.mlp", "output"),
            "block_output": (block, "output"),
        }
        whole = {"embeddings": (embeddings, "output"), "ln_final": (norm, "output")}
        if site["component"] == "linear_attention_state":
            return f"{STATE}{block.rpartition('.')[2]}", "output"
        if site["component"] in parts.PATTERNS:
            return f"{block}.{attention}", parts.PATTERNS[site["component"]]
        found = parts.inside(site["component"], self.model.config)
        if found is not None:
            return f"{block}.{found[0]}", found[1]
        return {**within, **whole, "lm_head": ("", "output"), "logits": ("", "output")}[site["component"]]

    def entries(self, site: dict) -> list[int] | None:
        """Which entries of the module's value a site is, None for all."""
        return parts.entries(site, self.model.config)

    def unembed(self, value: Tensor) -> Tensor:
        *_, norm, head = self.parts
        with torch.no_grad():
            return self.model.get_submodule(head)(self.model.get_submodule(norm)(value))

    def token_bytes(self, token: int) -> bytes:
        piece = self.tokenizer.convert_ids_to_tokens(token) or ""
        return bytes(BYTE_OF[c] for c in piece) if all(c in BYTE_OF for c in piece) else piece.encode()
