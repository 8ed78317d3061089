"""Small experiments and records, put together by hand."""

from __future__ import annotations

from dataclasses import replace

from causalab_mini.plan.nodes import Experiment, Observe, Plan, Point, Save
from causalab_mini.results.conditions import Conditions
from causalab_mini.results.records import Bundle, MetricTable, NearTie, Observed, TableRow, WriteReport
from causalab_mini.vocabulary.reasons import Reason

SAVES = (Save("p", "p.json"), Save("patched.generated", "ids/generated.safetensors"))


def observe(path: tuple[str, ...] = ("score",), saves: tuple[Save, ...] = SAVES) -> Observe:
    """A step that saves something and whose forwards nobody looks at."""
    return Observe(path[-1], path[0], "probe", path, ("a", "b"), (), (), (), saves)


def point(label: str, *observes: Observe) -> Point:
    """A point whose digest tells its label."""
    axes = tuple((part.split("=")[0], int(part.split("=")[1])) for part in label.split(",")) if label else ()
    document = f'{{"point": "{label}"}}'
    return Point(label, axes, f"digest-{label}", document, Plan("", observes or (observe(),)))


def experiment(*labels: str, digest: str = "experiment") -> Experiment:
    """An experiment of these points."""
    return Experiment(digest, tuple(point(label) for label in labels), (("weekdays/train", "table-digest"),))


def under(code: str, **tables: str) -> Conditions:
    """Conditions of a run by some code on some tables."""
    return Conditions({"the code": code}, tables)


def row(value: object, reason: Reason | None = None, number: int = 0) -> TableRow:
    """A row of a table."""
    return TableRow(f"row-{number}", number, value, reason, (3,), (" Friday",), None)


def table(*values: object, name: str = "p", decodes: bool = False) -> MetricTable:
    """A table of these values."""
    rows = tuple(row(value, None, number) for number, value in enumerate(values))
    return MetricTable(name, "token_prob", "probability", decodes, rows)


def stacked(values: dict[int, tuple[object, ...]], name: str = "p") -> MetricTable:
    """A table of a stacked site: each layer's values."""
    layers = [tuple(replace(line, layer=layer) for line in table(*own).rows) for layer, own in values.items()]
    return MetricTable(name, "token_prob", "probability", False, tuple(sum(zip(*layers, strict=True), ())))


def observed(label: str, path: tuple[str, ...] = ("score",), value: float = 0.5) -> Observed:
    """What a step of `point` brings."""
    import torch

    ids = Bundle("patched.generated", {"patched.generated": torch.tensor([[1, 2], [3, 4]])}, {"dims": "[]"})
    ties = (NearTie("patched on base", "row-1", 2, 0.0005),)
    writes = (WriteReport("push", "patched", (1, 0), (float("inf"), None)),)
    return Observed(label, path, (table(value, 0.25),), (ids,), ties, writes, ("something odd",))
