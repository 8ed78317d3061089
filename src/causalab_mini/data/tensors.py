"""A safetensors file without a tensor library: what its header says, and small checks of what it holds.

Knows bytes. Refuses to know what tensors are for. Raises `DataRefusal` with an empty path.
"""

from __future__ import annotations

import hashlib
import json
import random
import struct
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

from causalab_mini.errors import DataRefusal, Problem

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
"""Bytes of a number, by the dtypes that hold values."""

LONGEST_HEADER = 100_000_000


@dataclass(frozen=True)
class Entry:
    """One tensor: its dtype, its shape, and where its bytes begin and end in the file."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True)
class TensorFile:
    """A file's tensors by name, its string metadata, and the SHA-256 of its bytes."""

    path: Path
    tensors: Mapping[str, Entry]
    metadata: Mapping[str, str]

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the whole file."""
        digest = hashlib.sha256()
        with self.path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
        return digest.hexdigest()

    def numbers(self, name: str) -> Sequence[float]:
        """All numbers of a tensor, row by row."""
        entry = self.tensors[name]
        with self.path.open("rb") as stream:
            stream.seek(entry.start)
            raw = stream.read(entry.end - entry.start)
        count = len(raw) // SIZES[entry.dtype]
        match entry.dtype:
            case "F64" | "F32":
                return struct.unpack(f"<{count}{'d' if entry.dtype == 'F64' else 'f'}", raw)
            case "F16":
                return struct.unpack(f"<{count}e", raw)
            case _:
                # A bfloat16 is the upper half of a float32.
                halves = struct.unpack(f"<{count}H", raw)
                return struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *(half << 16 for half in halves)))


def read(path: Path, shown: str) -> TensorFile:
    """The header of the file at `path`, which messages call `shown`."""
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if size < 8 or not 2 <= length <= min(size - 8, LONGEST_HEADER):
                raise _malformed(shown)
            header: object = json.loads(stream.read(length))
    except OSError as error:
        raise DataRefusal(Problem("", f"the file '{shown}' cannot be read: {error.strerror}")) from error
    except (ValueError, RecursionError) as error:
        raise _malformed(shown) from error
    if not isinstance(header, dict):
        raise _malformed(shown)
    entries = cast("dict[str, object]", header)
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        raise _malformed(shown)
    strings = {str(key): str(value) for key, value in cast("dict[object, object]", metadata).items()}
    tensors = {name: _entry(name, entry, 8 + length, size, shown) for name, entry in entries.items()}
    return TensorFile(path, tensors, strings)


def _malformed(shown: str) -> DataRefusal:
    return DataRefusal(Problem("", f"'{shown}' is not a safetensors file", "save it with safetensors"))


def _entry(name: str, entry: object, base: int, size: int, shown: str) -> Entry:
    match entry:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(start), int(end)]}:
            pass
        case _:
            raise _malformed(shown)
    if dtype not in SIZES:
        message = f"the tensor '{name}' of '{shown}' is {dtype}"
        raise DataRefusal(Problem("", message, f"save it as one of: {', '.join(SIZES)}"))
    sides = tuple(side for side in cast("list[object]", shape) if isinstance(side, int))
    count = 1
    for side in sides:
        count *= side
    if len(sides) != len(shape) or not 0 <= start <= end <= size - base or end - start != count * SIZES[dtype]:
        raise _malformed(shown)
    return Entry(dtype, sides, base + start, base + end)


def skew(file: TensorFile, name: str) -> str | None:
    """How the columns of a matrix [d, k] are not orthonormal, or None where they are.

    Every column's length, and for a random vector c whether QᵀQc = c: columns that are not orthogonal pass that with
    probability 0, and it takes 2dk multiplications instead of dk².
    """
    entry = file.tensors[name]
    d, k = entry.shape
    tolerance = 1e-4 if SIZES[entry.dtype] >= 4 else 1e-2
    numbers = array("d", file.numbers(name))
    columns = [numbers[j::k] for j in range(k)]
    for j, column in enumerate(columns):
        length = _dot(column, column) ** 0.5
        if not abs(length - 1) <= tolerance:
            return f"column {j} has length {length:.4g}"
    draw = random.Random(0)
    c = [draw.gauss(0, 1) for _ in range(k)]
    y = [_dot(numbers[i * k : (i + 1) * k], c) for i in range(d)]
    gaps = [abs(_dot(column, y) - c[j]) for j, column in enumerate(columns)]
    worst = max(range(k), key=gaps.__getitem__)
    if gaps[worst] <= tolerance * max(k, 4) ** 0.5:
        return None
    products = [(abs(_dot(columns[worst], other)), j) for j, other in enumerate(columns) if j != worst]
    product, other = max(products)
    return f"columns {min(worst, other)} and {max(worst, other)} have the product {product:.4g}"


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
