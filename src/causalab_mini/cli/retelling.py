"""What the document of a finished run adds to its results: the plan, the tokens of axes, the strips of rows.

It is compiled again from the directory, without weights, and used only if it is what was run: the same document, data
and tokenizer. Otherwise the reason is told.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

from causalab_mini.cli.reading import Compiled, compile_document
from causalab_mini.cli.voice import Voice
from causalab_mini.errors import Refusal, RunFailure
from causalab_mini.plan.explain import explain
from causalab_mini.plan.generation import explain_generation
from causalab_mini.report.page import ROWS, Told
from causalab_mini.report.strips import touched_rows
from causalab_mini.report.tokens import axis_tokens
from causalab_mini.results.reader import Cells, Results
from causalab_mini.results.strict import sha256_file
from causalab_mini.spec.generation import COMMAND

TOLD = ("config.json", "tokenizer.json", "tokenizer_config.json")
"""Files of a checkpoint that plan and tokens come from."""


def retell(results: Results, document: Path | None, data_root: Path, weights: Path | None, *, rows: bool) -> Told:
    """What is to be had; `rows` asks for the strips too. `document`: the file that was run, if files lie beside it."""
    try:
        path = document or results.directory / "document.json"
        compiled = compile_document(path, Voice(), data_root, weights, gen=_gen(results), limit=_limit(results))
        if reason := _otherwise(compiled, results):
            return Told(missing=reason)
    except Refusal as refusal:
        return Told(missing=refusal.problems[0].message)
    except RunFailure as failure:
        return Told(missing=str(failure))
    checkpoint, there = compiled.checkpoint, frozenset(results.points)
    points = tuple(point for point in compiled.experiment.points if point.label in there)
    experiment = replace(compiled.experiment, points=points)
    plan = [explain(experiment.root), explain_generation(experiment)]
    return Told(
        "\n\n".join(part for part in plan if part),
        axis_tokens(experiment, checkpoint),
        touched_rows(experiment, checkpoint, results, ROWS) if rows else None,
    )


def _gen(results: Results) -> list[str]:
    """The generation settings of the run's command line, as it spells them."""
    found: dict[str, object] = {}
    for forward in cast(list[Cells], results.run.get("generation", [])):
        for key, setting in cast(dict[str, Cells], forward.get("settings", {})).items():
            if setting.get("source") == COMMAND:
                found[key] = setting.get("value")
    return [f"{key}={json.dumps(value)}" for key, value in found.items()]


def _limit(results: Results) -> int | None:
    """How many rows of every table the run was of, where it left some out."""
    partial = results.run.get("partial")
    limit = partial.get("rows") if isinstance(partial, dict) else None
    return limit if isinstance(limit, int) else None


def _otherwise(compiled: Compiled, results: Results) -> str:
    """Why this is not what was run, if it is not."""
    if compiled.experiment.digest != results.digest:
        return "the document alone is not what was run: the command line of the run said more, or it is another"
    if dict(compiled.experiment.tables) != results.run.get("data"):
        return "the data is not what it was when this was run"
    model = results.run.get("model")
    known = model.get("files", {}) if isinstance(model, dict) else {}
    folder = compiled.checkpoint.folder
    if any((folder / name).is_file() and known.get(name) != sha256_file(folder / name) for name in TOLD):
        return "the tokenizer or config of the model is not what it was when this was run"
    return ""
