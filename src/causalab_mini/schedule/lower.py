"""From plans to the naive schedule: one lane per row of every forward, one call per forward.

Everything a cleverer schedule may do is a pass over what this makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from causalab_mini.frames.runs import cut
from causalab_mini.plan.nodes import Forward, Observe, OutputOperand, Plan, Read, ReadOperand, Write
from causalab_mini.schedule.ir import (
    Argument,
    Call,
    Edit,
    Frame,
    Keep,
    Lane,
    LaneValue,
    Noise,
    ObserveKey,
    PublishedValue,
    Schedule,
)
from causalab_mini.vocabulary.mechanisms import Argument as Takes
from causalab_mini.vocabulary.reasons import Reason


def keep_of(read: Read, row: int) -> Keep | None:
    """The value a read keeps from its lane for `row`, or None where it keeps nothing."""
    window = read.windows[row]
    if isinstance(window, Reason):
        return None
    return Keep(read.place, _frame(read.pos.generated), window)


def lower(points: Iterable[tuple[str, Plan]]) -> Schedule:
    """The naive schedule of labelled points: every planned forward runs, alone and whole."""
    build = _Build()
    for label, plan in points:
        for observe in plan.observes():
            build.observe((label, observe.path), observe)
    return Schedule(tuple(build.lanes), tuple(build.calls), dict(build.bindings))


@dataclass
class _Build:
    lanes: list[Lane] = field(default_factory=list[Lane])
    calls: list[Call] = field(default_factory=list[Call])
    bindings: dict[tuple[ObserveKey, int], tuple[int, ...]] = field(
        default_factory=dict[tuple[ObserveKey, int], tuple[int, ...]]
    )

    def observe(self, key: ObserveKey, observe: Observe) -> None:
        sources: dict[str, tuple[Read, int, int]] = {}
        for index, forward in enumerate(observe.forwards):
            first = len(self.lanes)
            self.lanes.extend(_lanes(key, observe, forward, sources))
            numbers = tuple(range(first, len(self.lanes)))
            self.calls.append(Call(numbers, forward.batch.width))
            self.bindings[key, index] = numbers
            sources.update({read.name: (read, first, forward.decode) for read in forward.reads})


def _lanes(
    key: ObserveKey, observe: Observe, forward: Forward, sources: Mapping[str, tuple[Read, int, int]]
) -> Iterator[Lane]:
    for row, text in enumerate(forward.batch.rows):
        edits = tuple(
            Edit(
                write.name,
                write.place,
                _frame(write.pos.generated),
                window,
                write.mechanism,
                _argument(key, observe, write, row, sources),
                write.features,
            )
            for write in forward.writes
            if not isinstance(window := write.windows[row], Reason)
        )
        keeps = dict.fromkeys(keep for read in forward.reads if (keep := keep_of(read, row)) is not None)
        yield Lane(text.ids, edits, tuple(keeps), forward.decode)


def _argument(
    key: ObserveKey, observe: Observe, write: Write, row: int, sources: Mapping[str, tuple[Read, int, int]]
) -> Argument:
    if write.mechanism.argument is Takes.NOISE:
        return Noise(observe.example_ids[row])
    match write.operand:
        case ReadOperand(name):
            read, first, decode = sources[name]
            keep = keep_of(read, row)
            if keep is None:
                raise ValueError(f"row {row} of write '{write.name}' has no operand; the plan should have skipped it")
            return LaneValue(first + row, keep, _pick(read, decode))
        case OutputOperand(path, name):
            return PublishedValue((key[0], path), name, row)
        case literal:
            return literal


def _pick(read: Read, decode: int) -> tuple[int, ...] | None:
    """Which of the kept steps an operand is, where the read keeps every step."""
    if not read.pos.deferred:
        return None
    steps = cut(read.pos, range(decode))
    if isinstance(steps, Reason):
        raise ValueError(f"'{read.name}' has no step in {decode}; the plan should have refused it")
    return steps


def _frame(generated: bool) -> Frame:
    return "generated" if generated else "prompt"
