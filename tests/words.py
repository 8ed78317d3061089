"""A tokenizer of whole words, and the folders and desks that use it: one word or mark is one token.

Prompts then have the lengths one counts by eye. Folders without weights are enough to plan; the arithmetic engine of
`tests.fakes` runs the documents of its own folder in milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests import families

if TYPE_CHECKING:
    from causalab_mini.checkpoint.facts import Checkpoint
    from causalab_mini.engine.contract import Engine
    from causalab_mini.engine.modules import Network
    from causalab_mini.plan.nodes import Experiment

LETTERS = tuple("abcdefgh")
SPECIAL = (families.BOS, families.EOS, families.PAD)


def write_tokenizer(folder: Path, words: Sequence[str], *, bos: bool) -> None:
    """A tokenizer that knows `words` and punctuation split from them; ids 0 to 2 are special, words follow.

    A word of several tokens is written with bars between them: `Da|na`.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    pieces = dict.fromkeys(f"##{part}" if at else part for word in words for at, part in enumerate(word.split("|")))
    vocabulary = {piece: index for index, piece in enumerate((*SPECIAL, *pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=families.PAD))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{families.BOS} $A", special_tokens=[(families.BOS, 0)]
        )
    tokenizer.save(str(folder / "tokenizer.json"))
    named = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": families.EOS, "pad_token": families.PAD}
    (folder / "tokenizer_config.json").write_text(json.dumps(named | ({"bos_token": families.BOS} if bos else {})))


def write_shape(folder: Path, words: Sequence[str], **sizes: object) -> Path:
    """A Llama's folder without weights: its config, of the given sizes, and a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"model_type": "llama", "eos_token_id": 1, "pad_token_id": 2, **sizes}
    (folder / "config.json").write_text(json.dumps(config))
    write_tokenizer(folder, words, bos=False)
    return folder


def write_fake(folder: Path, depth: int) -> Path:
    """What the arithmetic engine's network would be saved as."""
    from tests import fakes

    return write_shape(
        folder,
        LETTERS,
        num_hidden_layers=depth,
        hidden_size=fakes.WIDTH,
        num_attention_heads=1,
        vocab_size=fakes.VOCABULARY,
    )


def write_model(folder: Path, model_type: str, width: int, words: Sequence[str] = LETTERS) -> Path:
    """A random model of a family whose tokenizer knows `words`."""
    families.write_folder(folder, model_type, width, vocabulary=max(len(words) + len(SPECIAL), 24))
    write_tokenizer(folder, words, bos=model_type in families.WITH_BOS)
    return folder


@dataclass(frozen=True)
class Bench:
    """Everything needed to run a document: facts, a network and an engine on it."""

    checkpoint: Checkpoint
    network: Network
    engine: Engine

    def compile(self, document: dict, root: Path) -> Experiment:
        return compiled(document, self.checkpoint, root)


def facts(folder: Path) -> Checkpoint:
    from causalab_mini.checkpoint.resolve import resolve

    return resolve("any", weights=folder)


def compiled(document: dict, checkpoint: Checkpoint, root: Path) -> Experiment:
    from causalab_mini.plan.compile import compile_experiment
    from causalab_mini.spec.load import load

    return compile_experiment(load(json.dumps(document).encode(), "document.json"), checkpoint, root)


def fake_bench(folder: Path, depth: int = 3) -> Bench:
    from tests import fakes

    network = fakes.network(depth)
    return Bench(facts(write_fake(folder, depth)), network, fakes.Fake(network))


def model_bench(folder: Path, model_type: str, width: int) -> Bench:
    from causalab_mini.engine.hooks import Hooks
    from causalab_mini.engine.modules import load

    network = load(write_model(folder, model_type, width), "fp32", None, "cpu")
    return Bench(facts(folder), network, Hooks(network))
