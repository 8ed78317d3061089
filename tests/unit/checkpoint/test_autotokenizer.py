"""The same ids, texts and special ids as transformers' AutoTokenizer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.unit.checkpoint import small
from tokenizers import Tokenizer, processors

from causalab_mini.checkpoint import resolve as resolving
from causalab_mini.checkpoint import tokenizer
from causalab_mini.checkpoint.resolve import resolve

TEXTS = (
    "If today is Friday, tomorrow is",
    "  two  spaces \n\ttab\r\n",
    "naïve 你好 ok 🏳️‍🌈",
    "a</s>b<pad> <|x|> <|y|>",
    "e\u0301 and é",
    "'s I'll 1234567",
)
GPT2: Mapping[str, object] = {
    "model_type": "gpt2",
    "n_layer": 2,
    "n_embd": 8,
    "n_head": 2,
    "vocab_size": 400,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
LLAMA: Mapping[str, object] = {**small.CONFIG, "vocab_size": 400}
BACKEND: Mapping[str, object] = {**small.NAMED, "tokenizer_class": "PreTrainedTokenizerFast"}


def byte_processed() -> Tokenizer:
    backend = small.byte_level()
    backend.post_processor = processors.ByteLevel(trim_offsets=True)  # pyright: ignore[reportAttributeAccessIssue]
    return backend


def both() -> Tokenizer:
    backend = small.byte_level()
    sequence = processors.Sequence([processors.ByteLevel(trim_offsets=True), small.template(backend, "<s> $A")])
    backend.post_processor = sequence  # pyright: ignore[reportAttributeAccessIssue]
    return backend


CASES: Mapping[str, tuple[Tokenizer, Mapping[str, object], Mapping[str, object]]] = {
    "nothing added": (small.byte_level(), LLAMA, BACKEND),
    "a template": (small.with_bos(), LLAMA, BACKEND),
    "trimming and a template": (both(), LLAMA, BACKEND),
    "a flag the file does not follow": (small.byte_level(), LLAMA, {**BACKEND, "add_bos_token": True}),
    "a flag against the file": (small.with_bos(), LLAMA, {**BACKEND, "add_bos_token": False}),
    "the llama class": (small.with_bos(), LLAMA, {**small.NAMED, "tokenizer_class": "LlamaTokenizer"}),
    "the gpt2 class": (byte_processed(), GPT2, {**small.NAMED, "tokenizer_class": "GPT2Tokenizer"}),
    "tokens only the config adds": (
        small.with_bos(),
        LLAMA,
        {
            **BACKEND,
            "pad_token": "[new]",
            "extra_special_tokens": ["<|y|>"],
            "added_tokens_decoder": {
                "0": {"content": "<s>", "special": True},
                "399": {"content": "<|x|>", "special": True, "lstrip": True},
            },
        },
    ),
}


def assert_equal(folder: Path, texts: tuple[str, ...] = TEXTS) -> None:
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    theirs, ours = AutoTokenizer.from_pretrained(folder), tokenizer.load(folder)
    for text in texts:
        ids = theirs(text)["input_ids"]
        assert list(ours.encode(text).ids) == ids, text
        assert ours.decode(tuple(ids)) == theirs.decode(ids), text
        assert ours.own(text).ids == theirs(text, add_special_tokens=False)["input_ids"], text
    assert (ours.eos_id, ours.pad_id) == (theirs.eos_token_id, theirs.pad_token_id)
    assert list(ours.prefix) == theirs("")["input_ids"]


@pytest.mark.parametrize("case", CASES)
def test_a_small_folder(tmp_path: Path, case: str) -> None:
    backend, config, named = CASES[case]
    assert_equal(small.folder(tmp_path, backend, config, named))


@pytest.mark.parametrize("key", resolving.bundled())
def test_a_bundled_checkpoint(key: str) -> None:
    found = resolve(key)
    assert_equal(found.folder)
    assert found.supported
    assert found.eos_ids
    assert found.weights()


@pytest.mark.smollm2
@pytest.mark.skipif("CAUSALAB_SMOLLM2" not in os.environ, reason="CAUSALAB_SMOLLM2 names no folder")
def test_a_real_checkpoint() -> None:
    folder = Path(os.environ["CAUSALAB_SMOLLM2"])
    assert_equal(folder)
    found = resolve("HuggingFaceTB/SmolLM2-135M-Instruct", weights=folder)
    assert (found.depth, found.hidden, found.vocab, found.heads, found.kv_heads, found.head_dim) == (
        30,
        576,
        49152,
        9,
        3,
        64,
    )
    assert (found.prefix, found.eos_ids, found.pad_id) == ((), frozenset({2}), 2)
    paris, spaced = found.answer("Paris", "bare", ""), found.answer("Paris", "space_prefixed", "")
    assert isinstance(paris, int)
    assert isinstance(spaced, int)
    assert [found.token_text(paris), found.token_text(spaced)] == ["Paris", " Paris"]
    text = found.encode("naïve 你好 ok")
    assert [text.text[start:end] for start, end in text.spans] == ["na", "ïve", " ", "你", "你", "好", "好", " ok"]
