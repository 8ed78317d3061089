"""The files of a checkpoint folder: which of them matter, their digests, and JSON out of them.

Knows names and bytes; refuses to know what a config means. Nothing here loads weights or runs code.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TypeAlias

from causalab_mini.errors import ModelUnavailable

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

CONFIG = "config.json"
GENERATION_CONFIG = "generation_config.json"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
SPECIAL_TOKENS = "special_tokens_map.json"
CHAT_TEMPLATE = "chat_template.jinja"
SAFETENSORS = "*.safetensors"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")

LIGHT = (CONFIG, GENERATION_CONFIG, "tokenizer*", SPECIAL_TOKENS, "added_tokens.json", "chat_template*")
"""Patterns of everything but the weights."""

SHARDS = "model.safetensors.index.json"
HEAVY = (SAFETENSORS, SHARDS)
"""Patterns of the weights."""

_BLOCK = 1 << 20


def read_object(path: Path) -> dict[str, Json]:
    """The JSON object in `path`. `ModelUnavailable` when it cannot be read or is something else."""
    try:
        content: Json = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ModelUnavailable(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ModelUnavailable(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ModelUnavailable(f"{path} is not a JSON object")
    return content


def read_optional(path: Path) -> dict[str, Json]:
    """The JSON object in `path`, or an empty one when there is no such file."""
    return read_object(path) if path.is_file() else {}


def token_content(token: Json) -> str | None:
    """The text of a special token, which files give as such or as an object; None where there is none."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def weight_files(folder: Path) -> tuple[str, ...]:
    """Names of the safetensors files, sorted."""
    return tuple(sorted(path.name for path in folder.glob(SAFETENSORS) if path.is_file()))


def missing_weights(folder: Path) -> tuple[str, ...]:
    """Names of the safetensors files that should be there and are not, sorted: shards, or the one file."""
    index = folder / SHARDS
    if not index.is_file():
        return () if weight_files(folder) else ("model.safetensors",)
    shards = read_object(index).get("weight_map")
    names = {name for name in shards.values() if isinstance(name, str)} if isinstance(shards, dict) else set[str]()
    return tuple(sorted(name for name in names if not (folder / name).is_file()))


def pickle_files(folder: Path) -> tuple[str, ...]:
    """Names of files that would have to be unpickled, sorted."""
    return tuple(sorted(path.name for pattern in PICKLES for path in folder.glob(pattern) if path.is_file()))


def relevant_files(folder: Path) -> tuple[str, ...]:
    """Names of the files that decide what the model computes, sorted."""
    names = {path.name for pattern in (*LIGHT, *HEAVY) for path in folder.glob(pattern) if path.is_file()}
    return tuple(sorted(names))


def file_digest(path: Path) -> str:
    """SHA-256 of the file's bytes, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def folder_digest(files: tuple[tuple[str, str], ...]) -> str:
    """SHA-256 over the sorted (name, digest) pairs, one `digest  name` line each."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()
