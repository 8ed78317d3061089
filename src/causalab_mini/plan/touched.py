"""What the reads and writes of a plan touch in its rows, for those who show it: taps under marks, tokens made visible.

Points that touch the same tokens are told together. Refuses to know how it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.frames.window import Window
from causalab_mini.plan.explain import spelled_operand
from causalab_mini.plan.nodes import Experiment, Forward, Observe, Read, Write
from causalab_mini.plan.rows import listed
from causalab_mini.vocabulary.reasons import Reason

_SEEN = {" ": "·", "\n": "↵", "\t": "⇥"}


@dataclass(frozen=True)
class Tap:
    """A read or write under its mark (`W1`, `R2`), in the forward it is part of. `places`: one for every point."""

    mark: str
    forward: Forward
    tap: Read | Write
    places: tuple[str, ...]

    def legend(self) -> str:
        """What it is: `write 'patch' at block_output[0] {index:-1} swap(v_cf) in 'patched' on 'base'`."""
        node, forward = self.tap, self.forward
        change = f" {node.mechanism.spelled(spelled_operand(node.operand))}" if isinstance(node, Write) else ""
        kind = "write" if isinstance(node, Write) else "read "
        where = f"at {listed(list(self.places))} {node.pos.compact()}"
        return f"{kind} '{node.name}' {where}{change} in '{forward.model}' on '{forward.role}'"


def alike(experiment: Experiment) -> Iterator[tuple[list[str], list[Observe]]]:
    """Steps whose taps have the same names and windows on the same rows, and the points they are of."""
    groups: dict[tuple[object, ...], list[tuple[str, Observe]]] = {}
    for point in experiment.points:
        for observe in point.plan.observes():
            touched = tuple(
                (forward.model, forward.role, forward.batch, tuple((tap.name, tap.pos, tap.windows) for tap in taps))
                for forward in observe.forwards
                for taps in ((*forward.writes, *forward.reads),)
            )
            groups.setdefault((observe.path, observe.example_ids, touched), []).append((point.label, observe))
    for group in groups.values():
        yield [label for label, _ in group], [observe for _, observe in group]


def taps(observes: Sequence[Observe]) -> Iterator[Tap]:
    """Every tap of a step: writes, then reads, numbered in the order of the forwards."""
    for letter in "WR":
        number = 0
        for place, forward in enumerate(observes[0].forwards):
            for i, tap in enumerate(_of(forward, letter)):
                number += 1
                places = (_of(other.forwards[place], letter)[i].place.spelled() for other in observes)
                yield Tap(f"{letter}{number}", forward, tap, tuple(dict.fromkeys(places)))


def _of(forward: Forward, letter: str) -> Sequence[Read | Write]:
    return forward.writes if letter == "W" else forward.reads


def holds(window: Window, place: int) -> bool:
    """Whether a window has the column or step `place`."""
    return not isinstance(window, Reason) and place in window


def prompt_marks(tapped: Sequence[Tap], forward: Forward, row: int, column: int) -> tuple[str, ...]:
    """The marks of the taps that touch a row's own `column` of its prompt in `forward`."""
    return tuple(
        tap.mark
        for tap in tapped
        if tap.forward is forward and not tap.tap.pos.generated and holds(tap.tap.windows[row], column)
    )


def step_marks(tapped: Sequence[Tap], forward: Forward, row: int, step: int) -> tuple[str, ...]:
    """The marks of the taps that touch a row's generated `step` in `forward`; `~` where they are cut afterwards."""
    return tuple(
        tap.mark + "~" * tap.tap.pos.deferred
        for tap in tapped
        if tap.forward is forward and tap.tap.pos.generated and holds(tap.tap.windows[row], step)
    )


def visible(token: int, checkpoint: Checkpoint) -> str:
    """A token's text with what is invisible in it made visible."""
    shown = (_SEEN.get(char, char) for char in checkpoint.token_text(token))
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in shown) or "''"
