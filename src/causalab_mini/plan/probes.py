"""Plans that look at another plan: what `check` runs beside a document. Pure: no torch, no weights.

A watched plan also publishes every value it uses. A probing plan runs each written forward as it is, unwritten, with
every write put back to what was there, and without each write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from causalab_mini.plan.nodes import Experiment, Forward, Observe, Plan, Publish, Read, ReadOperand, Save, Write
from causalab_mini.vocabulary.mechanisms import Argument, Swap

AS_IT_IS = "as it is"
UNWRITTEN = "unwritten"
PUT_BACK = "put back"


class Keep(Swap):
    """Put what is there in its own place. In a space this is to the bit: features are of one product, not of two."""

    keyword = "keep"
    argument = Argument.BEFORE


@dataclass(frozen=True)
class Probe:
    """The variants of one written forward. `prefix` begins their names; `without`: those that lack a write, by it."""

    path: tuple[str, ...]
    forward: Forward
    prefix: str
    without: tuple[tuple[str, str], ...]

    def value(self, variant: str, read: Read) -> str:
        """What a read's value in a variant is published as."""
        return f"{self.prefix}{variant}/{read.name}"

    def generated(self, variant: str) -> str:
        """What a variant's continuation is saved as."""
        return f"{self.prefix}{variant}.generated"

    def model(self, variant: str) -> str:
        """What the model of a variant is called in reports."""
        return f"{self.prefix}{variant}"


def chosen(experiment: Experiment, labels: Collection[str]) -> Experiment:
    """The experiment with these of its points alone."""
    return replace(experiment, points=tuple(point for point in experiment.points if point.label in labels))


def watched(experiment: Experiment) -> Experiment:
    """The same, with every read that anything is made of published, and shown continuations saved."""
    return _mapped(experiment, _watched)


def shown_as(read: str) -> str:
    """What a watched plan publishes the value of a read as."""
    return f"read '{read}'"


def probing(experiment: Experiment) -> Experiment:
    """The same steps, their written forwards in all variants; see `probes_of` for where to find them."""
    return _mapped(experiment, _probed)


def probes_of(observe: Observe) -> tuple[Probe, ...]:
    """What the probing plan has of a step, for each of its written forwards."""
    return tuple(
        Probe(
            observe.path,
            forward,
            f"{index}:",
            tuple((write.name, f"without {write.name}") for write in forward.writes) if len(forward.writes) > 1 else (),
        )
        for index, forward in enumerate(observe.forwards)
        if forward.writes
    )


def used_reads(observe: Observe) -> tuple[Read, ...]:
    """The reads of a step that something is made of: a metric, an output, or a write's operand."""
    names = {publish.read for publish in observe.outputs} | {score.metric.of for score in observe.scores}
    names |= {name for score in observe.scores if (name := score.metric.compared) is not None}
    operands = (write.operand for forward in observe.forwards for write in forward.writes)
    names |= {operand.read for operand in operands if isinstance(operand, ReadOperand)}
    return tuple(read for forward in observe.forwards for read in forward.reads if read.name in names)


def _mapped(experiment: Experiment, change: Callable[[Observe], Observe]) -> Experiment:
    def plan(node: Plan) -> Plan:
        return Plan(node.name, tuple(plan(each) if isinstance(each, Plan) else change(each) for each in node.children))

    return replace(experiment, points=tuple(replace(point, plan=plan(point.plan)) for point in experiment.points))


def _watched(observe: Observe) -> Observe:
    shown = tuple(Publish(shown_as(read.name), read.name, "none") for read in used_reads(observe))
    looked_at = {publish.read for publish in observe.outputs} | {score.metric.of for score in observe.scores}
    saved = {save.value for save in observe.saves}
    heard = [
        name
        for name, forward in zip(observe.generated, observe.forwards, strict=True)
        if name and (name in saved or any(read.name in looked_at for read in forward.reads))
    ]
    names = (*(publish.name for publish in shown), *heard)
    return replace(observe, outputs=(*observe.outputs, *shown), saves=tuple(Save(name, name) for name in names))


def _probed(observe: Observe) -> Observe:
    forwards = list(observe.forwards)
    shown: list[Publish] = []
    heard: list[str] = []
    for probe in probes_of(observe):
        place = forwards.index(probe.forward)
        variants = [AS_IT_IS, UNWRITTEN, PUT_BACK, *(variant for _, variant in probe.without)]
        forwards[place] = replace(probe.forward, model=probe.model(AS_IT_IS))
        shown += [Publish(probe.value(AS_IT_IS, read), read.name, "none") for read in probe.forward.reads]
        sources = tuple(_source(probe, write) for write in _single(probe.forward.writes))
        plain = _variant(probe, UNWRITTEN, ())
        forwards.append(replace(plain, reads=(*plain.reads, *sources)))
        back = (
            replace(write, mechanism=Swap(), operand=ReadOperand(source.name))
            if write.space is None
            else replace(write, mechanism=Keep(), operand=None)
            for write, source in zip(_single(probe.forward.writes), sources, strict=True)
        )
        forwards.append(_variant(probe, PUT_BACK, tuple(back)))
        for name, variant in probe.without:
            rest = tuple(write for write in probe.forward.writes if write.name != name)
            forwards.append(_variant(probe, variant, rest))
        for variant in variants[1:]:
            names = (probe.value(variant, read) for read in probe.forward.reads)
            shown += [Publish(name, name, "none") for name in names]
        heard += [probe.generated(variant) for variant in variants if probe.forward.decode]
    saves = tuple(Save(name, name) for name in (*(publish.name for publish in shown), *heard))
    return replace(observe, forwards=tuple(forwards), scores=(), outputs=(*observe.outputs, *shown), saves=saves)


def _variant(probe: Probe, variant: str, writes: tuple[Write, ...]) -> Forward:
    reads = tuple(replace(read, name=probe.value(variant, read)) for read in probe.forward.reads)
    return replace(probe.forward, model=probe.model(variant), writes=writes, reads=reads)


def _source(probe: Probe, write: Write) -> Read:
    """What was at a write's place."""
    name = f"{probe.prefix}{UNWRITTEN}/at {write.name} {write.place.spelled()}"
    return Read(name, write.place, write.pos, write.windows)


def _single(writes: tuple[Write, ...]) -> list[Write]:
    """The writes, one for each layer they are at."""
    return [replace(write, place=place) for write in writes for place in write.place.each()]
