"""How rows go on, read independently: for a number of steps, until an end token, or along a text they are fed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests import plain
from tests.oracle.positions import cut, dig, occurrence

if TYPE_CHECKING:
    from tests.oracle.world import World


@dataclass(frozen=True)
class Decoding:
    """`steps` of a decode, or the `column` it is fed from; `stops` at a row's first end token."""

    steps: int
    stops: bool = False
    column: str | None = None

    @classmethod
    def of(cls, decode: int | dict) -> Decoding:
        if isinstance(decode, int):
            return cls(decode)
        return cls(decode.get("steps") or 0, decode.get("eos") == "stop", decode.get("force"))

    @property
    def runs(self) -> bool:
        return self.steps > 0 or self.column is not None

    @property
    def uneven(self) -> bool:
        return self.stops or self.column is not None

    def fed(self, world: World, row: dict) -> list[int] | str | None:
        """What a row is fed, or why nothing; None where it chooses."""
        if self.column is None:
            return None
        text = dig(row, self.column)
        if text is None or not str(text).strip():
            return "empty_cell"
        return world.tokenizer(text, add_special_tokens=False)["input_ids"]

    def ended(self, rollout: plain.Rollout, eos: list[int]) -> plain.Rollout:
        """What there is of a row's run once it stops, if it does."""
        ends = [step for step, token in enumerate(rollout.ids) if token in eos]
        if not self.stops or not ends:
            return rollout
        return replace(rollout, ids=rollout.ids[: ends[0] + 1], logits=rollout.logits[: ends[0] + 1])


def seen(pos: dict, tokens: list[int] | str, n: int) -> list[int] | str:
    """The steps at which tokens of a continuation of n are seen: where they come out, or where they go in."""
    if isinstance(tokens, str) or pos.get("token") != "input":
        return tokens
    entered = [token + 1 for token in tokens if token != n - 1]
    lost = len(entered) < len(tokens) and not ("all" in pos and "scope" not in pos)
    return "out_of_range" if lost or not entered else entered


def located(pos: dict, n: int) -> list[int] | str:
    """The steps of a cut without a scope."""
    return seen(pos, cut(pos, list(range(n))), n)


def said(world: World, pos: dict, ids: list[int], value: str | None) -> list[int] | str:
    """The steps of a position of the finished continuation `ids`; `value` is the text of the scope's variable."""
    run, scope = list(range(len(ids))), pos.get("scope") or {}
    if scope.get("segment"):
        run = [step for step in run if ids[step] in world.eos][:1]
    if scope.get("variable"):
        parts = [world.token_bytes(token) for token in ids]
        text = b"".join(parts).decode("utf-8", "surrogateescape")
        found = occurrence(text, value, scope.get("occurrence"))
        if isinstance(found, str):
            return found
        start, end = (len(text[:at].encode("utf-8", "surrogateescape")) for at in found)
        starts = [sum(map(len, parts[:step])) for step in range(len(ids))]
        run = [step for step in run if starts[step] < end and starts[step] + len(parts[step]) > start]
    return seen(pos, cut(pos, run), len(ids)) if run else "alignment_missing"
