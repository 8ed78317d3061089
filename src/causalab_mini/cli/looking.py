"""The document behind a look: some prompts, one model, and what an intervention writes into it, if anything.

A look goes the way of every document (checked, compiled, run), so it is refused in the same words. What it makes up
lies in memory, and prompts of the command line in a directory that is gone when the look is over.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from causalab_mini.cli.reading import load_document
from causalab_mini.cli.voice import Voice
from causalab_mini.errors import Problem, Refusal, suggest

if TYPE_CHECKING:
    from causalab_mini.checkpoint.facts import Checkpoint
    from causalab_mini.cli.reading import Source
    from causalab_mini.plan.nodes import Experiment, Observe
    from causalab_mini.spec.children import Child
    from causalab_mini.vocabulary.generation import Json

ORIGINAL = "original"
HEAD = "logits-looked-at"
LOOKED = "looked-at-"
TABLE = "given/prompts"
FREE = {"steps": 16, "eos": "stop"}
"""How a look goes on where nothing says otherwise."""


@dataclass(frozen=True)
class Asked:
    """What the command line says of a look."""

    document: Path | None
    model: str | None
    prompts: tuple[str, ...]
    rows: str | None
    field: str
    intervention: str | None
    decode: Mapping[str, object]
    gen: Mapping[str, Json]
    data_root: Path
    weights: Path | None


@dataclass(frozen=True)
class Look:
    """A compiled look: its one step, and the rows' cells as they stand in the table, by role."""

    experiment: Experiment
    checkpoint: Checkpoint
    dtype: str
    attention: str | None
    cells: Mapping[str, Sequence[object]]

    @property
    def observe(self) -> Observe:
        """The step that is looked at: the last."""
        return list(self.experiment.points[0].plan.observes())[-1]


@contextmanager
def looking(asked: Asked, voice: Voice, *, every_role: bool = False, need_weights: bool = False) -> Generator[Look]:
    """The look that is asked for. `every_role`: texts of all roles, not only of those that are run."""
    from causalab_mini.checkpoint.resolve import resolve
    from causalab_mini.data.fields import FieldPath
    from causalab_mini.data.rows import cells_of
    from causalab_mini.data.tables import load as load_table
    from causalab_mini.errors import at
    from causalab_mini.plan.compile import compile_experiment
    from causalab_mini.spec.load import load

    if (asked.document is None) == (asked.model is None):
        raise Refusal(Problem("", "a look is at a document or at a model", "name a DOC, or say --model KEY, not both"))
    source = None if asked.document is None else load_document(asked.document, voice)
    if asked.prompts and asked.rows is not None:
        raise Refusal(Problem("", "--prompt and --rows both say what is read", "keep one"))
    made = _document(asked, source, every_role=every_role)
    voice.document = None  # Problems point into what was made up.
    with TemporaryDirectory(prefix="causalab-mini-") as folder:
        root = _root(asked, Path(folder))
        try:
            loaded = load(json.dumps(made).encode(), "look").commanded(asked.gen)
            model = loaded.points[0].document.model
            with at("model", "key"):
                checkpoint = resolve(
                    model.key,
                    model.revision,
                    weights=asked.weights,
                    document=asked.document,
                    need_weights=need_weights,
                )
            experiment = compile_experiment(loaded, checkpoint, root, asked.document)
        except Refusal as refusal:
            raise type(refusal)(replace(problem, line=None) for problem in refusal.problems) from refusal
        document = loaded.points[0].document
        (*_, step) = document.steps.values()
        cells = {
            role: cells_of(load_table(ref, root), FieldPath.parse(document.roles[role].field))
            for role, ref in step.rows.items()
        }
        yield Look(experiment, checkpoint, model.dtype, model.attn_implementation, cells)


def _root(asked: Asked, folder: Path) -> Path:
    """The data root: the given one, or a folder of the given prompts."""
    if not asked.prompts:
        return asked.data_root
    path = folder / f"{TABLE}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps([{"example_id": str(i), "input": text} for i, text in enumerate(asked.prompts)]))
    return folder


def _document(asked: Asked, source: Source | None, *, every_role: bool) -> dict[str, object]:
    if source is None:
        if asked.intervention is not None:
            raise Refusal(Problem("", "--intervention is one of a document's", "name the document"))
        if asked.rows is None and not asked.prompts:
            raise Refusal(Problem("", "nothing is said to be read", "say --prompt TEXT, or --rows REF"))
        base: dict[str, object] = {
            "model": {"key": asked.model, "dtype": "fp32"},
            "roles": {"prompt": {"field": "input" if asked.prompts else asked.field}},
            "sites": {},
        }
        body = _unwritten(["prompt"], _decode(asked, FREE))
        return _finished(asked, base, {"look": body}, {}, "look", {"prompt": TABLE})
    lowered = dict(source.loaded.points[0].lowered)
    lowered.pop("header", None)
    step, child = _child(source, asked.intervention)
    document = source.loaded.points[0].document
    rows = dict(document.steps[step].rows)
    if every_role or asked.intervention is None:
        roles = list(rows) if every_role else ["base" if "base" in rows else next(iter(rows))]
        body = _unwritten(roles, _decode(asked, _own(child)))
        if child.intervention.generation:
            body["generation"] = child.intervention.generation
        return _finished(asked, lowered, {"look": body}, {}, "look", rows)
    body = _written(child, _decode(asked, _own(child)))
    steps = _before(lowered, step) if '"ref"' in json.dumps(body["writes"]) else {}
    name = child.name if child.name in document.interventions else "look"
    kept = lowered.get("interventions", {}) if steps else {}
    assert isinstance(kept, dict)
    return _finished(asked, lowered, {**kept, name: body}, steps, name, rows)


def _finished(
    asked: Asked,
    base: Mapping[str, object],
    interventions: Mapping[str, object],
    steps: Mapping[str, object],
    name: str,
    rows: Mapping[str, str],
) -> dict[str, object]:
    """The whole document: `base` with a head to look at, and a last step that runs the intervention `name`."""
    from causalab_mini.spec.forwards import generated
    from causalab_mini.spec.parse import Parser

    own, sites, roles = interventions[name], base["sites"], base["roles"]
    assert isinstance(own, dict)
    assert isinstance(sites, dict)
    assert isinstance(roles, dict)
    parsed = Parser().intervention(json.loads(json.dumps(own))).node
    used = {part["input"] for section in ("reads", "models") for part in own.get(section, {}).values()}
    ref = TABLE if asked.prompts else asked.rows
    if asked.prompts:
        if len(used) > 1:
            hint = "--rows names a table that has them all"
            raise Refusal(Problem("", f"--prompt is one text, and '{name}' reads {', '.join(sorted(used))}", hint))
        roles = {role: {"field": "input"} for role in roles}
    read = {role: ref or rows[role] for role in roles if role in used and (ref or role in rows)}
    looked = {name: {"read": name} for name in own["reads"] if name.startswith(LOOKED)}
    saved = [*looked, *(generated(parsed) if parsed is not None else ())]
    return {
        **base,
        "roles": roles,
        "sites": {**sites, HEAD: {"component": "lm_head"}},
        "interventions": dict(interventions),
        "steps": {
            **steps,
            "look": {
                "kind": "observe",
                "rows": read,
                "interventions": name,
                "outputs": looked,
                "saves": [{"value": value, "file_path": f"{value}.safetensors"} for value in saved],
            },
        },
    }


def _said(model: str, role: str) -> dict[str, object]:
    """A read of what a model's tokens are chosen from."""
    return {"site": HEAD, "pos": {"frame": "generated", "all": True}, "model": model, "input": role}


def _unwritten(roles: Sequence[str], decode: Mapping[str, object]) -> dict[str, object]:
    return {"reads": {f"{LOOKED}{i}": _said(ORIGINAL, role) for i, role in enumerate(roles)}, "decode": dict(decode)}


def _written(child: Child, decode: Mapping[str, object]) -> dict[str, object]:
    """The intervention with its models, their writes and the reads these need, and nothing else."""
    whole = child.intervention.model_dump(mode="json", exclude_none=True)
    if not whole["models"]:
        raise Refusal(Problem("", f"the intervention '{child.name}' declares no model", "leave --intervention out"))
    operands = {write["operand"] for write in whole["writes"].values() if isinstance(write.get("operand"), str)}
    reads = {name: read for name, read in whole["reads"].items() if name in operands}
    models = enumerate(whole["models"].items())
    reads |= {f"{LOOKED}{i}": _said(name, model["input"]) for i, (name, model) in models}
    parts = {"writes": whole["writes"], "models": whole["models"], "decode": dict(decode)}
    return {"reads": reads, **parts, **({"generation": whole["generation"]} if whole["generation"] else {})}


def _decode(asked: Asked, own: Mapping[str, object]) -> dict[str, object]:
    """How a look goes on: as the intervention does, but for what the command line says."""
    kept = {key: value for key, value in own.items() if not (key == "force" and asked.decode)}
    return {**({} if "force" in kept else FREE if asked.decode and "force" in own else {}), **kept, **asked.decode}


def _own(child: Child) -> Mapping[str, object]:
    """An intervention's decode, or that of a look where it has none."""
    decode = child.intervention.decode
    return FREE if decode.never else decode.model_dump(mode="json", exclude_defaults=True)


def _child(source: Source, name: str | None) -> tuple[str, Child]:
    """The step and the intervention of it that is looked at: the one called `name`, else the first."""
    from causalab_mini.spec.children import children

    document = source.loaded.points[0].document
    found = {child.name: (step, child) for step in reversed(document.steps) for child in children(document, step)}
    if name is None:
        return list(found.values())[-1]
    if name not in found:
        message = f"no step runs an intervention '{name}'"
        raise Refusal(Problem("", message, suggest(name, found, "interventions")))
    return found[name]


def _before(lowered: Mapping[str, object], step: str) -> dict[str, object]:
    """The steps before `step`, which publish what its writes take."""
    steps = lowered["steps"]
    assert isinstance(steps, dict)
    names = list(steps)
    return {name: {**steps[name], "saves": []} for name in names[: names.index(step)]}
