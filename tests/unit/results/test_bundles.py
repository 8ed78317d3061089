"""Tensor files: what is in them, and that equal contents are equal bytes."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file

from causalab_mini.results.bundles import write_bundle
from causalab_mini.results.records import Bundle

STAMP = {f"key{number}": str(number) for number in range(12)}


def test_a_file_holds_the_tensors_and_says_what_they_are(tmp_path: Path) -> None:
    tensors = {"b": torch.arange(6).reshape(2, 3), "a": torch.tensor([0.5, float("nan")]), "empty": torch.empty(0, 4)}
    write_bundle(tmp_path / "x.safetensors", Bundle("b", tensors, {"dims": '["row", "step"]'}), STAMP)
    found = load_file(tmp_path / "x.safetensors")
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name].nan_to_num(7.0), tensor.nan_to_num(7.0))
    with safe_open(tmp_path / "x.safetensors", "pt") as opened:
        assert opened.metadata() == {"dims": '["row", "step"]', **STAMP}


def test_equal_contents_are_equal_bytes(tmp_path: Path) -> None:
    # The library writes twelve keys in one of 12! orders: six files alike by chance do not happen.
    bundle = Bundle("b", {"b": torch.ones(3), "a": torch.zeros(2)}, {})
    for number in range(6):
        write_bundle(tmp_path / f"{number}.safetensors", bundle, STAMP)
    assert len({(tmp_path / f"{number}.safetensors").read_bytes() for number in range(6)}) == 1
    header = (tmp_path / "0.safetensors").read_bytes()
    assert int.from_bytes(header[:8], "little") % 8 == 0
