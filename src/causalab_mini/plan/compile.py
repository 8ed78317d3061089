"""From a document's points, their rows and a checkpoint to an experiment. No torch, no weights.

All problems of all points come at once, each once.
"""

from __future__ import annotations

import json
from pathlib import Path

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.families import CAPABILITIES, implemented
from causalab_mini.checkpoint.naming import self_test
from causalab_mini.checkpoint.verdicts import VIEWS, Proof
from causalab_mini.errors import PlanRefusal, Problem
from causalab_mini.plan.nodes import Experiment, Observe, Plan, Point, Space
from causalab_mini.plan.observe import Compiler
from causalab_mini.plan.problems import Problems
from causalab_mini.plan.rows import Rows
from causalab_mini.plan.spaces import Files, Spaces
from causalab_mini.spec.children import children
from causalab_mini.spec.document import Document
from causalab_mini.spec.generation import COMMANDED_NOTHING, Layer
from causalab_mini.spec.load import Loaded
from causalab_mini.vocabulary.components import COMPONENTS


def compile_experiment(
    loaded: Loaded, checkpoint: Checkpoint, data_root: Path, document: Path | None = None
) -> Experiment:
    """Every point of `loaded` as a plan. `document`: its path, which the files it names are relative to.

    Raises `PlanRefusal` with all problems, their paths in the document.
    """
    problems = Problems()
    known, useless = checkpoint.config.supported, _useless(checkpoint)
    if useless is not None:
        families = ", ".join(sorted(row.model_type for row in CAPABILITIES))
        raise PlanRefusal(Problem("model.key", useless, f"the families are: {families}"))
    rows = Rows(checkpoint, data_root, loaded.limit)
    files = Files(document)
    for point in loaded.points[:1]:
        _attention(point.document, checkpoint, problems)
    points: list[Point] = []
    for point in loaded.points:
        plan = compile_point(point.document, checkpoint, rows, problems, files, loaded.command)
        lowered = json.dumps(point.lowered, indent=1, ensure_ascii=False)
        points.append(Point(point.label, point.axes, point.digest, lowered, plan))
    if loaded.command.values and not any(_generates(point.plan) for point in points):
        problems.add("nothing is generated in this document, so --gen has nothing to say", "leave it out")
    if problems.found:
        raise PlanRefusal(sorted(problems.found))
    warnings = (*(() if known else unknown(checkpoint)), *rows.warnings, *files.warnings)
    return Experiment(loaded.digest, tuple(points), rows.used(), warnings, _spaces(points))


def _useless(checkpoint: Checkpoint) -> str | None:
    """Why nothing can be done with a checkpoint of a family without a row, if that is so."""
    family, verdict = checkpoint.model_type, checkpoint.verdict
    if checkpoint.config.supported:
        return None
    if not implemented(family):
        return f"the family '{family}' is not one whose places can be read and written, nor one of transformers"
    if verdict is not None and verdict.whole:
        return f"the family '{family}' is not known, and it cannot be used: {verdict.whole}"
    return None


def unknown(checkpoint: Checkpoint) -> tuple[str, ...]:
    """What is to be said of a checkpoint of a family without a row: what of it is not proved."""
    begins = f"the family '{checkpoint.model_type}' is not known"
    if checkpoint.verdict is None:
        how = f"`{self_test(checkpoint)}` does it now"
        return (f"{begins}: what its places hold is proved, or refused, when the weights are loaded; {how}",)
    findings = checkpoint.verdict.findings
    looked_for = [name for name in (*COMPONENTS.names(), VIEWS) if name in findings]
    missing = [name for name in looked_for if findings[name].proof is not Proof.PROVED]
    proved = f"{begins}; of what is looked for, the self-test proved"
    return (f"{proved} everything" if not missing else f"{proved} all but {', '.join(missing)}",)


def _generates(plan: Plan) -> bool:
    return any(forward.decode for observe in plan.observes() for forward in observe.forwards)


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
    document: Document,
    checkpoint: Checkpoint,
    rows: Rows,
    problems: Problems,
    files: Files | None = None,
    command: Layer = COMMANDED_NOTHING,
) -> Plan:
    """One complete document as a plan: its steps in order, a list of interventions as a nested plan.

    `command`: generation settings that are stronger than the document's.
    """
    spaces = Spaces(document, checkpoint, files or Files(), problems)
    compiler = Compiler(document, checkpoint, rows, problems, spaces, command)
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
