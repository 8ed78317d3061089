"""Skip layers: below its first write a lane is the clean run, and enters there with its values. Promise: last bit.

A lane enters at the first block that its writes or kept values touch, if another lane has run the same columns without
those writes in an earlier round. A write to a block's output is a write to the next block's input. Lanes that go on
generating, or that others start from, need the keys and values of every block and stay whole.
"""

from __future__ import annotations

from dataclasses import replace

from causalab_mini.plan.nodes import Place
from causalab_mini.schedule.ir import Edit, Entry, Keep, Lane, Schedule
from causalab_mini.schedule.keeps import handed_up
from causalab_mini.schedule.limits import Shape
from causalab_mini.vocabulary.components import COMPONENTS, Stage

INPUT = COMPONENTS.get("block_input")
OUTPUT = COMPONENTS.get("block_output")


def skip_layers(schedule: Schedule, shape: Shape) -> Schedule:
    """The same rounds, lanes entering as high as they can, where the family allows it."""
    if not shape.enters:
        return schedule
    depth = shape.depth
    round_of = {number: index for index, call in enumerate(schedule.calls) for number in call.lanes}
    parents = {schedule.lanes[number].parent for number in round_of}
    clean = {schedule.lanes[number].ids: number for number in reversed(round_of) if not schedule.lanes[number].edits}
    lanes = list(schedule.lanes)
    for number in round_of:
        lane = lanes[number]
        twin = clean.get(lane.ids)
        if twin is None or round_of[twin] >= round_of[number] or lane.decode > 1 or number in parents:
            continue
        if not lane.edits or any(edit.frame == "prompt" and edit.at[0] < lane.start for edit in lane.edits):
            continue
        raised = tuple(_raised(edit, lane, depth) for edit in lane.edits)
        layer = _entry(raised, lane.keeps, depth)
        if layer > 0:
            lanes[number] = replace(lane, edits=raised, entry=Entry(layer, twin))
            entering = entering_keep(lane, layer)
            lanes[twin] = replace(lanes[twin], keeps=tuple(dict.fromkeys((*lanes[twin].keeps, entering))))
    return handed_up(replace(schedule, lanes=tuple(lanes)))


def entering_keep(lane: Lane, layer: int) -> Keep:
    """The values with which a lane enters at `layer`: those of its own columns, of the clean run."""
    return Keep(Place(INPUT, layer), "prompt", tuple(range(lane.start, len(lane.ids))))


def _entry(edits: tuple[Edit, ...], keeps: tuple[Keep, ...], depth: int) -> int:
    """The first block that the edits and keeps need."""
    layer = min(min(_layer(edit.place, depth) for edit in edits), depth - 1)
    # What enters a block is not looked at there, so a value kept from its input is of a block that runs.
    kept = (_layer(keep.place, depth) - (keep.place.component is INPUT) for keep in keeps)
    return min(layer, *kept) if keeps else layer


def _layer(place: Place, depth: int) -> int:
    if place.layer is not None:
        return place.layer
    return 0 if place.component.stage is Stage.BEFORE else depth


def _raised(edit: Edit, lane: Lane, depth: int) -> Edit:
    """A write to a block's output as one to the next block's input, where nothing tells the two apart."""
    place = edit.place
    if place.component is not OUTPUT or place.layer is None or place.layer + 1 >= depth:
        return edit
    above = Place(INPUT, place.layer + 1, place.columns)
    watched = {(tap.place.component, tap.place.layer) for tap in lane.keeps}
    written = {(other.place.component, other.place.layer) for other in lane.edits}
    if (OUTPUT, place.layer) in watched or (INPUT, place.layer + 1) in watched | written:
        return edit
    return replace(edit, place=above)
