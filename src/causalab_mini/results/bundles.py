"""Tensors as a safetensors file, with the strings that say what they are. Nothing is ever pickled."""

from __future__ import annotations

from pathlib import Path

from causalab_mini.results.files import replacing
from causalab_mini.results.records import Bundle


def write_bundle(path: Path, bundle: Bundle, metadata: dict[str, str]) -> None:
    """Write the bundle's tensors under their own names; `metadata` is added to the bundle's own.

    Tensors keep their dtype and shape, on the CPU; two that share memory are both written in full.
    """
    from safetensors.torch import save_file

    tensors = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in bundle.tensors.items()}
    with replacing(path) as beside:
        save_file(tensors, beside, metadata={**bundle.metadata, **metadata})
