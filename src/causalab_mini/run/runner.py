"""Walks a schedule and hands out every point as soon as all its values are known.

Knows the order of calls and what becomes of values; refuses to know files and terminals.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.engine.contract import Engine
from causalab_mini.engine.memory import free_bytes
from causalab_mini.engine.modules import Network
from causalab_mini.plan.nodes import Experiment, Observe, Point
from causalab_mini.plan.spaces import place_width
from causalab_mini.results.records import Bundle, Observed
from causalab_mini.run.bundles import generated_bundle, output_bundle
from causalab_mini.run.calls import CallRunner, Greedy
from causalab_mini.run.featurizers import Featurizers
from causalab_mini.run.holders import Holders
from causalab_mini.run.noise import noise
from causalab_mini.run.reports import Reports
from causalab_mini.run.score import Reading, Scorer
from causalab_mini.run.values import Values
from causalab_mini.schedule.cost import Cost, call_cost
from causalab_mini.schedule.ir import Edit, LaneValue, Noise, ObserveKey, PublishedValue, Schedule
from causalab_mini.schedule.limits import Limits
from causalab_mini.schedule.optimize import Mode, settled
from causalab_mini.schedule.prepare import Prepared, prepare
from causalab_mini.vocabulary.mechanisms import Gaussian
from causalab_mini.vocabulary.reasons import Reason


@dataclass(frozen=True)
class PointResult:
    """Everything one point produced."""

    point: Point
    observed: tuple[Observed, ...]


@dataclass
class Run:
    """One run of an experiment's points on one loaded model.

    Iterate over `results()`; `prepared` says what will run, `done` counts what has. `skip`: labels of points to leave
    out, which changes no bit of the others. `mode` is how hard the schedule is worked on; `batch_size` bounds the lanes
    of a call. `halved` counts the calls that were run in halves because memory ran out. Where `stop` says so after a
    call, no other follows.
    """

    experiment: Experiment
    checkpoint: Checkpoint
    network: Network
    engine: Engine
    batch_size: int | None = None
    mode: Mode = "auto"
    skip: Collection[str] = ()
    done: Cost = field(default_factory=Cost)
    halved: int = 0
    stop: Callable[[], bool] = lambda: False

    @cached_property
    def prepared(self) -> Prepared:
        """The schedule of every point whose label is not in `skip`: the calls of the whole one that they need."""
        mode = settled(self.mode, half=self.network.model.dtype != torch.float32)
        device = self.network.device
        item = self.network.model.dtype.itemsize
        limits = Limits.within(self.batch_size, free_bytes(device), item, accelerator=device.type != "cpu")
        return prepare(self.experiment.points, self.checkpoint, mode, limits, self.skip)

    def results(self) -> Iterator[PointResult]:
        """Run the points, yielding each when its last value is known."""
        schedule = self.prepared.schedule
        walk = _Walk(self, schedule, self.prepared.points)
        for index, call in enumerate(schedule.calls):
            walk.calls.run(index)
            self.done += call_cost(schedule, call, self.checkpoint.depth)
            self.done += Cost(0, -walk.calls.spared * self.checkpoint.depth)
            self.halved = walk.calls.halved
            for label in walk.holders.finished(index):
                if label not in self.skip:
                    yield walk.finish(label)
            walk.release(index)
            if self.stop():
                return


class _Walk:
    """The state of one run: the values so far, and what was published from them."""

    def __init__(self, run: Run, schedule: Schedule, points: tuple[Point, ...]) -> None:
        self._run = run
        self._schedule = schedule
        self._values = Values(schedule)
        self.holders = Holders(schedule)
        self._featurizers = Featurizers(run.engine.device)
        self._scorer = Scorer(run.network, run.checkpoint, self._featurizers, alone=run.mode == "alone")
        self._points = {point.label: point for point in points}
        self._observes: dict[ObserveKey, Observe] = {
            (point.label, observe.path): observe for point in points for observe in point.plan.observes()
        }
        self._published: dict[tuple[ObserveKey, str], dict[str, Tensor]] = {}
        self._lost: dict[tuple[ObserveKey, str], frozenset[int]] = {}
        self._unwritten: dict[int, bool] = {}
        greedy = Greedy(tuple(sorted(run.checkpoint.eos_ids)), run.checkpoint.pad_id)
        self.calls = CallRunner(
            schedule, run.network, run.engine, greedy, self._argument, self._values, self._featurizers
        )

    def finish(self, label: str) -> PointResult:
        """Score and publish everything of a point."""
        point = self._points[label]
        observed = tuple(self._observed((label, observe.path), observe) for observe in point.plan.observes())
        for key in [key for key in self._published if key[0][0] == label]:
            del self._published[key]
        return PointResult(point, observed)

    def release(self, index: int) -> None:
        """Forget the values that nothing after call `index` asks for."""
        self._values.forget(self.holders.released(index))

    def _reading(self, key: ObserveKey, observe: Observe) -> Reading:
        lanes = [self._schedule.bindings[key, index] for index in range(len(observe.forwards))]
        return Reading(observe, lanes, self._values, self._run.checkpoint, self._lacks)

    def _observed(self, key: ObserveKey, observe: Observe) -> Observed:
        reading = self._reading(key, observe)
        tables = tuple(self._scorer.table(score, reading) for score in observe.scores)
        reports = Reports(key, observe, self._schedule, self._values)
        writes = tuple(reports.writes(self._lacks))
        warnings = (*reports.unmoved(writes), *reports.unwritten(self._lacks))
        bundles = tuple(self._bundles(key, observe, reading))
        return Observed(key[0], key[1], tables, bundles, tuple(reports.near_ties()), writes, warnings)

    def _bundles(self, key: ObserveKey, observe: Observe, reading: Reading) -> Iterator[Bundle]:
        outputs = {publish.name: publish for publish in observe.outputs}
        generated = {name: index for index, name in enumerate(observe.generated)}
        for save in observe.saves:
            if save.value in outputs:
                publish = outputs[save.value]
                yield output_bundle(publish, self._publish(key, save.value), reading, self._run.checkpoint)
            elif save.value in generated:
                index = generated[save.value]
                lanes = self._schedule.bindings[key, index]
                steps = observe.forwards[index].decode
                continuations = [self._values.continuation(lane, steps) for lane in lanes]
                decoding = observe.forwards[index].decoding
                pad_id = self._run.checkpoint.pad_id
                yield generated_bundle(save.value, continuations, decoding, pad_id, observe.example_ids)

    def _publish(self, key: ObserveKey, name: str) -> dict[str, Tensor]:
        if (key, name) not in self._published:
            observe = self._observes[key]
            publish = next(publish for publish in observe.outputs if publish.name == name)
            reading = self._reading(key, observe)
            self._published[key, name] = self._scorer.published(publish, reading)
            if (key, name) not in self._lost:
                located = reading.located(publish.read, next(iter(reading.read(publish.read).place.layers), None))
                self._lost[key, name] = frozenset(
                    row for row, found in enumerate(located) if isinstance(found.value, Reason)
                )
        return self._published[key, name]

    def _lacks(self, lane: int) -> bool:
        """Whether a write of a lane had an operand without a value, which only the run could tell."""
        if lane not in self._unwritten:
            self._unwritten[lane] = any(self._missing(edit) for edit in self._schedule.lanes[lane].edits)
        return self._unwritten[lane]

    def _missing(self, edit: Edit) -> bool:
        match edit.argument:
            case LaneValue(lane):
                return self._lacks(lane)
            case PublishedValue(key, name, row):
                if (key, name) not in self._lost:
                    self._publish(key, name)
                lost, observe = self._lost[key, name], self._observes[key]
                reduced = any(publish.name == name and publish.reduce == "mean" for publish in observe.outputs)
                return len(lost) == len(observe.example_ids) if reduced else row in lost
            case _:
                return False

    def _argument(self, edit: Edit, step: int) -> Tensor | float | None:
        """An edit's argument at a step: [n or 1, w]; of a generated edit, its entry for this step; [0, w] for none."""
        if self._missing(edit):
            return torch.empty(0, self._width(edit))
        match edit.argument:
            case LaneValue(lane, keep, pick):
                value = self._values.value(lane, keep)
                value = value if pick is None else value[list(pick)]
                value = value if edit.space is None else self._featurizers.of(edit.space).encode(value)
            case PublishedValue(key, name, row):
                value = self._row_of(edit, key, name, row)
            case Noise(example_id, keys):
                assert isinstance(edit.mechanism, Gaussian)
                count = len(edit.at) if edit.frame == "prompt" else 1
                width = self._width(edit) * (keys + step if keys else 1)
                drawn = noise(edit.mechanism.seed, example_id, step, count, width)
                return drawn.unflatten(-1, (self._width(edit), -1)) if keys else drawn
            case literal:
                return literal
        if edit.frame == "generated" and value.shape[0] > 1:
            return value[edit.at.index(step)][None]
        return value

    def _row_of(self, edit: Edit, key: ObserveKey, name: str, row: int) -> Tensor:
        """The published tensor as an argument of one row: [n, w], at patterns [n, H, keys]."""
        publish = next(publish for publish in self._observes[key].outputs if publish.name == name)
        tensors = self._publish(key, name)
        value = tensors[name]
        # A pattern has an axis more.
        one = 2 if edit.place.component.pattern else 1
        if publish.reduce == "mean":
            return value if value.ndim > one else value[None]
        lengths = tensors.get(f"{name}.lengths")
        if lengths is not None:
            start = int(lengths[:row].sum())
            return value[start : start + int(lengths[row])]
        return value[row] if value.ndim > one + 1 else value[row][None]

    def _width(self, edit: Edit) -> int:
        """How wide the value is that the edit is of, whichever of its features it is limited to; for each key."""
        return place_width(self._run.checkpoint, edit.place) if edit.space is None else edit.space.k
