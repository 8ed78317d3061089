"""The words of the language as lists for people: read off the registries, so that they cannot say anything else."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field

from causalab_mini.spec import planned
from causalab_mini.spec.document import RESERVED
from causalab_mini.vocabulary.components import COMPONENTS, Component
from causalab_mini.vocabulary.featurizers import FEATURIZERS, Featurizer
from causalab_mini.vocabulary.generation import KEYS, SETTINGS, Class
from causalab_mini.vocabulary.mechanisms import MECHANISMS, Argument, Mechanism
from causalab_mini.vocabulary.metric import Metric
from causalab_mini.vocabulary.metrics import METRICS
from causalab_mini.vocabulary.node import Node
from causalab_mini.vocabulary.reasons import Reason


@dataclass(frozen=True)
class Word:
    """One word: what it means, its limits in sentences, the same as facts for programs."""

    name: str
    summary: str
    limits: tuple[str, ...] = ()
    facts: dict[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True)
class Section:
    """Words of one kind."""

    key: str
    title: str
    words: tuple[Word, ...]
    note: str = ""


def sections() -> tuple[Section, ...]:
    """Every kind of word, in the order a document meets them."""
    shapes = "b rows, P prompt tokens, d hidden, H and KV heads h wide, I neurons, V vocabulary; then at a later step"
    return (
        Section("components", "components", tuple(map(_component, COMPONENTS)), shapes),
        Section("positions", "positions", POSITIONS, "an integer is short for {index}"),
        Section("mechanisms", "mechanisms", tuple(_mechanism(kind.node) for kind in MECHANISMS), "f value, o operand"),
        Section(
            "featurizers", "featurizers", tuple(_featurizer(kind.node) for kind in FEATURIZERS), "x value, f features"
        ),
        Section("metrics", "metrics", tuple(_metric(kind.node) for kind in METRICS)),
        Section("settings", "generation settings", tuple(map(_setting, sorted(SETTINGS))), SETTINGS_NOTE),
        Section(
            "reasons", "reasons a row has no value", tuple(Word(reason.value, _REASONS[reason]) for reason in Reason)
        ),
        Section(
            "reserved", "reserved names", tuple(Word(name, "stands for itself, never declared") for name in RESERVED)
        ),
        Section("not_implemented", "not implemented yet", tuple(_missing())),
    )


POSITIONS = (
    Word("index", "one token, counted from the run's start, or from its end when negative"),
    Word("span", "tokens [a, b), half open", ("both ends of one sign have a fixed width",)),
    Word("last", "the last n tokens", ("n > 0",)),
    Word("all", "every token of the run"),
    Word(
        "scope",
        "the run a cut counts in: variable (an occurrence of its text), segment, or both",
        (
            "occurrence picks one of several; without it several are ambiguous",
            "segments: prefix in the prompt, eos in the continuation",
        ),
    ),
    Word(
        "frame",
        "prompt (the row's own text, 0 is its first token after the prefix) or generated (token k is step k)",
        ("a write in the generated frame names a step the decode reaches: index, span or all",),
    ),
)

_REASONS = {
    Reason.ALIGNMENT_MISSING: "the scope's run is not in the text",
    Reason.ALIGNMENT_AMBIGUOUS: "the scope fits several runs and no occurrence picks one",
    Reason.OUT_OF_RANGE: "the cut does not fit the run",
    Reason.EMPTY_CELL: "the answer or variable cell is empty",
    Reason.WRITE_SKIPPED: "a write with missing: skip left the row alone",
    Reason.NON_FINITE: "the value is not a finite number",
}


SETTINGS_NOTE = "what belongs to decode is refused where it says something else"


def _setting(name: str) -> Word:
    key = KEYS[name]
    free = () if key.shape is None or key.kind is not Class.PROCESSOR else (f"{key.shape.needed} is needed",)
    return Word(name, key.kind.value, free, {"class": key.kind.value})


def _component(component: Component) -> Word:
    limits: list[str] = [f"{component.shape}, then {component.step_shape}"]
    limits.append("needs layers" if component.per_layer else "refuses layers")
    if not component.writable:
        limits.append("read only")
    if component.width.parts:
        limits.append(f"may name {component.width.parts}")
    if component.residual:
        limits.append("can be viewed as logits or probs")
    if component.value:
        limits.append(f"{'the softmax' if component.distribution else 'another name'} of {component.value}")
    facts: dict[str, object] = {
        "shape": component.shape,
        "step_shape": component.step_shape,
        "width": component.width.value,
        "layers": component.per_layer,
        "parts": component.width.parts,
        "writable": component.writable,
        "views": component.residual,
        "value": component.identity,
    }
    return Word(component.name, component.summary, ("; ".join(limits),), facts)


def _mechanism(node: type[Mechanism]) -> Word:
    params = _fields(node, ())
    limits = ["operand: " + ("required" if node.argument is Argument.OPERAND else "none")]
    limits += [f"params: {', '.join(_spelled(param) for param in params)}"] if params else []
    if node.absolute:
        limits.append("absolute: two of them on one token are refused")
    if node.argument is Argument.BEFORE:
        limits.append("follows another write there, and is the last")
    facts: dict[str, object] = {
        "formula": node.formula,
        "operand": node.argument is Argument.OPERAND,
        "absolute": node.absolute,
        "params": params,
    }
    return Word(node.keyword, f"{_first_line(node)}: {node.formula}", ("; ".join(limits),), facts)


def _featurizer(node: type[Featurizer]) -> Word:
    tensors = [f"{slot.name} [{', '.join(slot.axes)}]{' (optional)' if slot.optional else ''}" for slot in node.slots]
    fields = [name for name in node.model_fields if node.sized or name != "k"]
    limits = [f"from {node.source.value}"] if tensors else []
    limits += [f"tensors: {', '.join(tensors)}"] if tensors else []
    limits += [f"fields: {', '.join(fields)}"] if fields else []
    facts: dict[str, object] = {
        "formula": node.formula,
        "from": node.source.value,
        "tensors": [{"name": slot.name, "axes": list(slot.axes), "optional": slot.optional} for slot in node.slots],
        "fields": fields,
    }
    return Word(node.keyword, f"{_first_line(node)}: {node.formula}", ("; ".join(limits),) if limits else (), facts)


def _metric(node: type[Metric]) -> Word:
    fields = _fields(node, ("kind", "of"))
    limits = [f"of: {node.needs.value}", f"unit: {node.unit}"]
    limits += [f"fields: {', '.join(_spelled(each) for each in fields)}"] if fields else []
    facts: dict[str, object] = {
        "formula": node.formula,
        "unit": node.unit,
        "needs": node.needs.value,
        "answers": list(node.answers),
        "fields": fields,
    }
    return Word(node.keyword, f"{_first_line(node)}: {node.formula}", ("; ".join(limits),), facts)


def _missing() -> Iterator[Word]:
    """What the language has and this version refuses by name."""
    for name in planned.STEPS:
        yield Word(name, "step kind")


def _fields(node: type[Node], but: tuple[str, ...]) -> list[dict[str, object]]:
    schema = node.model_json_schema()
    required = schema.get("required", [])
    return [
        {"name": name, "required": name in required, **({} if name in required else {"default": field.default})}
        for name, field in node.model_fields.items()
        if name not in but
    ]


def _spelled(param: dict[str, object]) -> str:
    return f"{param['name']} (required)" if param["required"] else f"{param['name']} = {_value(param['default'])}"


def _value(value: object) -> str:
    return "null" if value is None else str(value)


def _first_line(node: type[Node]) -> str:
    return (inspect.getdoc(node) or "").splitlines()[0].rstrip(".").lower()
