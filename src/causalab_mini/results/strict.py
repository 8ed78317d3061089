"""Strict JSON, and the numbers that go into it.

Strict means: no NaN, no Infinity. Whatever may hold one passes through `settled` first.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]


def pretty(value: object) -> bytes:
    """`value` as the UTF-8 text of a file a person may open: one space of indent, a line end."""
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def compact(value: object) -> str:
    """`value` on one line, without spaces."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def fingerprint(value: object) -> str:
    """SHA-256 of `value` as JSON with sorted keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_finite(value: object) -> bool:
    """Whether no number in `value` (nested lists included) is NaN or infinite."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list | tuple):
        return all(is_finite(item) for item in value)
    return True
