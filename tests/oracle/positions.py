"""Positions, read independently: cuts of runs, occurrences in texts, paths into rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.oracle.world import Prompt


def pos_of(tap: dict) -> dict:
    return {"index": tap["pos"]} if isinstance(tap["pos"], int) else tap["pos"]


def width(pos: dict) -> int | None:
    if "span" in pos:
        a, b = pos["span"]
        return b - a if (a < 0) == (b < 0) else None
    return 1 if "index" in pos else pos.get("last")


def deferred(pos: dict) -> bool:
    """Whether a generated position is known only when the continuation is finished."""
    negative = min([pos.get("index", 0), *pos.get("span", [])]) < 0
    return pos.get("frame") == "generated" and bool(negative or "last" in pos or "scope" in pos)


def cut(pos: dict, run: list[int]) -> list[int] | str:
    n = len(run)
    if "index" in pos:
        return [run[pos["index"]]] if -n <= pos["index"] < n else "out_of_range"
    if "last" in pos:
        return run[-pos["last"] :] if pos["last"] <= n else "out_of_range"
    if "span" in pos:
        a, b = (end + n if end < 0 else end for end in pos["span"])
        return run[a:b] if 0 <= a < b <= n else "out_of_range"
    return run


def occurrence(text: str, value: str | None, which: int | None) -> tuple[int, int] | str:
    """Characters of the one occurrence of `value` in `text`, or of the one `which` picks."""
    if not value or not value.strip():
        return "alignment_missing"
    left, right = (r"(?<!\w)" if value[0].isalnum() else ""), (r"(?!\w)" if value[-1].isalnum() else "")
    there = [m.start() for m in re.finditer(f"{left}(?={re.escape(value)}{right})", text)]
    there = there or [m.start() for m in re.finditer(f"(?={re.escape(value)})", text)]
    if not there or (which is not None and not -len(there) <= which < len(there)):
        return "alignment_missing"
    if which is None and len(there) > 1:
        return "alignment_ambiguous"
    start = there[which or 0]
    return start, start + len(value)


def stretch(prompt: Prompt, scope: dict, value: str | None) -> tuple[int, int] | str:
    """Characters of a chat turn, of a variable's text, or of one inside the other."""
    start, end = 0, len(prompt.text)
    if scope.get("segment"):
        name, number = re.fullmatch(r"([^\[]+)(?:\[(\d+)\])?", scope["segment"]).groups()
        turns = [turn[1:] for turn in prompt.turns if turn[0] == name]
        if number is None and len(turns) > 1:
            return "alignment_ambiguous"
        if int(number or 0) >= len(turns):
            return "alignment_missing"
        start, end = turns[int(number or 0)]
        if "variable" not in scope:
            return start, end
    found = occurrence(prompt.text[start:end], value, scope.get("occurrence"))
    return found if isinstance(found, str) else (start + found[0], start + found[1])


def dig(row: object, path: str) -> object:
    """`a.b[0]` in a row, None where it is not there."""
    for name, number in re.findall(r"(\w+)|\[(\d+)\]", path):
        try:
            row = row[int(number)] if number else row[name]
        except (KeyError, IndexError, TypeError):
            return None
    return row
