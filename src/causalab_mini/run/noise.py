"""Noise that depends on nothing but a row, a step and a seed."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor


def noise(seed: int, example_id: str, step: int, positions: int, width: int) -> Tensor:
    """Standard normal noise [positions, width], fp32, CPU.

    The generator's seed is the first eight bytes, big-endian, of SHA-256 of the UTF-8 text `seed:example_id:step`,
    modulo 2⁶³.
    """
    text = f"{seed}:{example_id}:{step}".encode()
    start = int.from_bytes(hashlib.sha256(text).digest()[:8], "big") % 2**63
    generator = torch.Generator(device="cpu").manual_seed(start)
    return torch.randn(positions, width, generator=generator, dtype=torch.float32)
