"""Tensors as a safetensors file, with the strings that say what they are. Nothing is ever pickled."""

from __future__ import annotations

import json
from pathlib import Path

from causalab_mini.results.files import write_bytes
from causalab_mini.results.records import Bundle

LENGTH = 8
"""Bytes of a safetensors file that say how long its JSON header is, which is padded to a multiple of as many."""


def write_bundle(path: Path, bundle: Bundle, metadata: dict[str, str]) -> None:
    """Write the bundle's tensors under their own names; `metadata` is added to the bundle's own.

    Tensors keep their dtype and shape, on the CPU; two that share memory are both written in full. Equal tensors and
    metadata give equal bytes.
    """
    from safetensors.torch import save

    tensors = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in bundle.tensors.items()}
    write_bytes(path, _ordered(save(tensors, metadata={**bundle.metadata, **metadata})))


def _ordered(content: bytes) -> bytes:
    """The same file, its metadata sorted: the library writes them in an order that changes from run to run."""
    end = LENGTH + int.from_bytes(content[:LENGTH], "little")
    header: dict[str, object] = json.loads(content[LENGTH:end])
    text = json.dumps(_sorted(header), separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % LENGTH)
    return len(text).to_bytes(LENGTH, "little") + text + content[end:]


def _sorted(header: dict[str, object]) -> dict[str, object]:
    return {
        name: dict(sorted(entry.items())) if name == "__metadata__" and isinstance(entry, dict) else entry
        for name, entry in sorted(header.items())
    }
