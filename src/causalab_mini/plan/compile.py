"""From a document's points, their rows and a checkpoint to an experiment. No torch, no weights.

All problems of all points come at once, each once.
"""

from __future__ import annotations

import json
from pathlib import Path

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.families import CAPABILITIES
from causalab_mini.errors import PlanRefusal, Problem
from causalab_mini.plan.nodes import Experiment, Observe, Plan, Point, Space
from causalab_mini.plan.observe import Compiler
from causalab_mini.plan.problems import Problems
from causalab_mini.plan.rows import Rows
from causalab_mini.plan.spaces import Files, Spaces
from causalab_mini.spec.children import children
from causalab_mini.spec.document import Document
from causalab_mini.spec.load import Loaded


def compile_experiment(
    loaded: Loaded, checkpoint: Checkpoint, data_root: Path, document: Path | None = None
) -> Experiment:
    """Every point of `loaded` as a plan. `document`: its path, which the files it names are relative to.

    Raises `PlanRefusal` with all problems, their paths in the document.
    """
    problems = Problems()
    if not checkpoint.supported:
        message = f"the family '{checkpoint.model_type}' is not one whose places can be read and written yet"
        known = ", ".join(sorted(row.model_type for row in CAPABILITIES))
        raise PlanRefusal(Problem("model.key", message, f"the families are: {known}"))
    rows = Rows(checkpoint, data_root)
    files = Files(document)
    for point in loaded.points[:1]:
        _attention(point.document, checkpoint, problems)
    points: list[Point] = []
    for point in loaded.points:
        plan = compile_point(point.document, checkpoint, rows, problems, files)
        lowered = json.dumps(point.lowered, indent=1, ensure_ascii=False)
        points.append(Point(point.label, point.axes, point.digest, lowered, plan))
    if problems.found:
        raise PlanRefusal(sorted(problems.found))
    warnings = (*rows.warnings, *files.warnings)
    return Experiment(loaded.digest, tuple(points), rows.used(), warnings, _spaces(points))


def _spaces(points: list[Point]) -> tuple[Space, ...]:
    """Every space that a read or write of some point is in, once for each name."""
    found: dict[tuple[str, Space], Space] = {}
    for point in points:
        for observe in point.plan.observes():
            for forward in observe.forwards:
                spaces = (tap.space for tap in (*forward.reads, *forward.writes))
                found.update({(space.name, space): space for space in spaces if space is not None})
    return tuple(found.values())


def _attention(document: Document, checkpoint: Checkpoint, problems: Problems) -> None:
    """Refuse an attention implementation that would compute something else than the family does."""
    asked, family = document.model.attn_implementation, checkpoint.config.capability
    if asked is not None and family is not None and asked not in family.attentions:
        problems.add(
            f"the family '{checkpoint.model_type}' does not compute under '{asked}' attention",
            f'write "attn_implementation": "{family.attention}", or leave it out',
            at="model.attn_implementation",
        )


def compile_point(
    document: Document, checkpoint: Checkpoint, rows: Rows, problems: Problems, files: Files | None = None
) -> Plan:
    """One complete document as a plan: its steps in order, a list of interventions as a nested plan."""
    spaces = Spaces(document, checkpoint, files or Files(), problems)
    compiler = Compiler(document, checkpoint, rows, problems, spaces)
    nodes: list[Plan | Observe] = []
    for name, step in document.steps.items():
        inner = [compiler.observe(name, step, child) for child in children(document, name)]
        observes = tuple(observe for observe in inner if observe is not None)
        if step.nested:
            nodes.append(Plan(name, observes))
        else:
            nodes.extend(observes)
    spaces.rest()
    return Plan("", tuple(nodes))
