"""From plans to the naive schedule: one lane per row of every forward, one call per forward.

Everything a cleverer schedule may do is a pass over what this makes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from causalab_mini.frames.continuation import located
from causalab_mini.plan.nodes import Decoding, Forward, Observe, OutputOperand, Plan, Read, ReadOperand, Write
from causalab_mini.plan.place import Place
from causalab_mini.schedule.ir import (
    Argument,
    Call,
    Edit,
    Ends,
    Frame,
    Keep,
    Lane,
    LaneValue,
    Noise,
    ObserveKey,
    PublishedValue,
    Rules,
    Schedule,
)
from causalab_mini.vocabulary.mechanisms import Argument as Takes
from causalab_mini.vocabulary.reasons import Reason

LAST_STEP = "forced_eos_token_id"
"""The setting that acts at the last step: a shorter decode is no beginning of a longer one."""


def keep_of(read: Read, row: int, place: Place) -> Keep | None:
    """The value a read keeps from its lane for `row` at `place`, one of its own, or None where it keeps nothing."""
    window = read.windows[row]
    if isinstance(window, Reason):
        return None
    return Keep(place, _frame(read.pos.generated), window)


def keeps_of(read: Read, row: int) -> Iterator[Keep]:
    """All values a read keeps from its lane for `row`: one, one for each layer of a stacked read, or none."""
    for place in read.place.each():
        keep = keep_of(read, row, place)
        if keep is not None:
            yield keep


def lower(points: Iterable[tuple[str, Plan]]) -> Schedule:
    """The naive schedule of labelled points: every planned forward runs, alone and whole."""
    build = _Build()
    for label, plan in points:
        for observe in plan.observes():
            build.observe((label, observe.path), observe)
    return Schedule(
        tuple(build.lanes), tuple(build.calls), build.bindings, frozenset(build.wanted), frozenset(build.heard)
    )


class _Build:
    def __init__(self) -> None:
        self.lanes: list[Lane] = []
        self.calls: list[Call] = []
        self.bindings: dict[tuple[ObserveKey, int], tuple[int, ...]] = {}
        self.wanted: dict[tuple[int, Keep], None] = {}
        self.heard: set[int] = set()

    def observe(self, key: ObserveKey, observe: Observe) -> None:
        sources: dict[str, tuple[Read, int]] = {}
        looked_at = _looked_at(observe)
        for index, forward in enumerate(observe.forwards):
            first = len(self.lanes)
            own = tuple(_lanes(key, observe, forward, sources))
            self.lanes.extend(own)
            numbers = tuple(range(first, len(self.lanes)))
            width = forward.batch.width
            self.calls.append(Call(numbers, width, head_columns(own, width)))
            self.bindings[key, index] = numbers
            for read in forward.reads:
                sources[read.name] = (read, first)
                if read.name in looked_at:
                    for row, lane in enumerate(numbers):
                        self.wanted.update({(lane, keep): None for keep in keeps_of(read, row)})
            if _heard(observe, index):
                self.heard.update(numbers)


def _looked_at(observe: Observe) -> set[str]:
    """The reads that a metric or an output is of."""
    compared = (score.metric.compared for score in observe.scores)
    scored = {score.metric.of for score in observe.scores} | {name for name in compared if name is not None}
    return scored | {publish.read for publish in observe.outputs}


def _heard(observe: Observe, index: int) -> bool:
    """Whether a forward's continuation is shown: it is saved, or a table or output is of one of its reads."""
    forward, looked_at = observe.forwards[index], _looked_at(observe)
    saved = {save.value for save in observe.saves} - {""}
    shown = forward.decode > 0 and any(read.name in looked_at for read in forward.reads)
    return shown or observe.generated[index] in saved


def needed_steps(observe: Observe, index: int) -> tuple[int, ...]:
    """How many steps of a forward's decode the plan needs, row by row: to what is shown, or to the last operand."""
    forward = observe.forwards[index]
    rows = range(len(forward.batch.rows))
    if _heard(observe, index):
        return tuple(forward.decode for _ in rows)
    steps = [0 for _ in rows]
    operands = {(write.operand.read, row) for write, row in _landing(observe) if isinstance(write.operand, ReadOperand)}
    for read in forward.reads:
        for row in rows:
            window = read.windows[row]
            if (read.name, row) in operands and read.pos.generated and not isinstance(window, Reason):
                steps[row] = max(steps[row], window[-1] + 1)
    return tuple(steps)


def _landing(observe: Observe) -> Iterator[tuple[Write, int]]:
    """Every write with every row it lands on."""
    for forward in observe.forwards:
        for write in forward.writes:
            yield from ((write, row) for row, window in enumerate(write.windows) if not isinstance(window, Reason))


def head_columns(lanes: Iterable[Lane], width: int) -> tuple[int, ...]:
    """The columns of a call, `width` wide, at which lanes read, write or need logits to go on."""
    columns: set[int] = set()
    for lane in lanes:
        offset = width - len(lane.ids)
        if lane.decode:
            columns.add(width - 1)
        for tap in (*lane.keeps, *lane.edits):
            if tap.place.component.identity != "logits":
                continue
            if tap.frame == "prompt":
                columns.update(offset + column for column in tap.at if column >= lane.start)
            elif 0 in tap.at:
                columns.add(width - 1)
    return tuple(sorted(columns))


def _lanes(
    key: ObserveKey, observe: Observe, forward: Forward, sources: Mapping[str, tuple[Read, int]]
) -> Iterator[Lane]:
    for row, text in enumerate(forward.batch.rows):
        edits = tuple(
            Edit(
                place,
                _frame(write.pos.generated),
                window,
                write.mechanism,
                _argument(key, observe, write, row, sources, len(text.ids)),
                write.features,
                write.space,
            )
            for write in forward.writes
            if not isinstance(window := write.windows[row], Reason)
            for place in write.place.each()
        )
        keeps = dict.fromkeys(keep for read in forward.reads for keep in keeps_of(read, row))
        yield Lane(text.ids, edits, tuple(keeps), forward.decode, ends=_ends(observe, forward, row))


def _ends(observe: Observe, forward: Forward, row: int) -> Ends:
    decoding = forward.decoding
    if decoding.forced is None:
        return Ends(decoding.stops, rules=_rules(decoding, observe.example_ids[row]))
    forced = decoding.forced[row]
    return Ends(forced=() if isinstance(forced, Reason) else forced)


def _rules(decoding: Decoding, example_id: str) -> Rules | None:
    if not decoding.chosen:
        return None
    processors = decoding.processors
    length = decoding.steps if LAST_STEP in processors else None
    drawn = "" if decoding.sample is None else example_id
    return Rules(json.dumps(processors, sort_keys=True), length, decoding.sample, drawn)


def _argument(
    key: ObserveKey, observe: Observe, write: Write, row: int, sources: Mapping[str, tuple[Read, int]], tokens: int
) -> Argument:
    if write.mechanism.argument is Takes.NOISE:
        return Noise(observe.example_ids[row], tokens if write.place.component.pattern else 0)
    match write.operand:
        case ReadOperand(name):
            read, first = sources[name]
            keep = keep_of(read, row, read.place)
            if keep is None:
                raise ValueError(f"row {row} of write '{write.name}' has no operand; the plan should have skipped it")
            return LaneValue(first + row, keep, _pick(read, keep))
        case OutputOperand(path, name):
            return PublishedValue((key[0], path), name, row)
        case literal:
            return literal


def _pick(read: Read, keep: Keep) -> tuple[int, ...] | None:
    """Which of the kept steps an operand is, where the read keeps every step."""
    if not read.pos.deferred:
        return None
    steps = located(read.pos, len(keep.at))
    if isinstance(steps, Reason):
        raise ValueError(f"'{read.name}' has no step in {len(keep.at)}; the plan should have refused it")
    return steps


def _frame(generated: bool) -> Frame:
    return "generated" if generated else "prompt"
