"""Small tokenizers and checkpoint folders whose every token is chosen by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

SPECIALS = ("<s>", "</s>", "<pad>")
WORDS = (
    *(" Friday", "Friday", " today", "If", " is", " ok", " Paris", "Paris", " New", " York", "na", " ï"),
    *("day", " Fri"),
)
"""Each of these is one token; any other text falls into bytes."""

CONFIG: Mapping[str, object] = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 300,
    "eos_token_id": 1,
    "max_position_embeddings": 64,
}
NAMED: Mapping[str, object] = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}


def byte_chars() -> dict[int, str]:
    """The character that stands for each byte in a byte-level vocabulary."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(rest)}


def byte_level(words: Sequence[str] = WORDS, halves: Sequence[bytes] = (b"\xe4\xbd",)) -> Tokenizer:
    """A byte-level BPE in which `words` and the byte strings `halves` are tokens; no post-processor."""
    chars = byte_chars()
    vocab = {token: i for i, token in enumerate(SPECIALS)}
    vocab |= {char: len(vocab) + i for i, char in enumerate(chars.values())}
    merges: list[tuple[str, str]] = []
    for content in (*(word.encode() for word in words), *halves):
        whole = "".join(chars[byte] for byte in content)
        for end in range(1, len(whole)):
            pair = (whole[:end], whole[end])
            if pair not in merges:
                merges.append(pair)
            vocab.setdefault(whole[: end + 1], len(vocab))
    tokenizer = Tokenizer(models.BPE(vocab, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIALS])
    return tokenizer


def template(tokenizer: Tokenizer, single: str) -> processors.TemplateProcessing:
    """A post-processor that puts special tokens around a text: `<s> $A`."""
    named = [(part, tokenizer.token_to_id(part)) for part in single.split() if part != "$A"]
    return processors.TemplateProcessing(single=single, special_tokens=named)


def with_bos() -> Tokenizer:
    """The byte-level one that puts `<s>` before a text."""
    tokenizer = byte_level()
    tokenizer.post_processor = template(tokenizer, "<s> $A")
    return tokenizer


def folder(
    path: Path,
    tokenizer: Tokenizer | None = None,
    config: Mapping[str, object] = CONFIG,
    named: Mapping[str, object] = NAMED,
    generation: Mapping[str, object] | None = None,
) -> Path:
    """A checkpoint folder with one file that is called safetensors."""
    path.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizer or with_bos()
    tokenizer.save(str(path / "tokenizer.json"))
    vocab = {"vocab_size": tokenizer.get_vocab_size()} if config is CONFIG else {}
    (path / "config.json").write_text(json.dumps({**config, **vocab}))
    (path / "tokenizer_config.json").write_text(json.dumps(named))
    if generation is not None:
        (path / "generation_config.json").write_text(json.dumps(generation))
    (path / "model.safetensors").write_bytes(b"weights")
    return path
