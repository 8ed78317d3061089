"""A plan and its rows as JSON. No torch."""

from __future__ import annotations

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.text import Text
from causalab_mini.plan.explain import spelled_operand
from causalab_mini.plan.generation import settings_record
from causalab_mini.plan.nodes import Experiment, Forward, Observe, Plan, Read, Write
from causalab_mini.vocabulary.reasons import Reason


def plan_tree(node: Plan | Observe) -> dict[str, object]:
    """A plan as JSON objects: names, forwards, taps with their windows."""
    if isinstance(node, Plan):
        return {"name": node.name, "kind": "plan", "children": [plan_tree(child) for child in node.children]}
    return {
        "name": node.name,
        "kind": "observe",
        "example_ids": list(node.example_ids),
        "metrics": [{"name": score.name, "kind": score.metric.keyword} for score in node.scores],
        "outputs": [{"name": output.name, "read": output.read, "reduce": output.reduce} for output in node.outputs],
        "saves": [{"value": save.value, "file_path": save.file_path} for save in node.saves],
        "forwards": [_forward(forward) for forward in node.forwards],
    }


def rows_tree(experiment: Experiment, checkpoint: Checkpoint) -> list[dict[str, object]]:
    """The rows of every step as JSON objects: each role's text, ids and tokens, a chat's turns. Equal rows once."""
    found: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for observe in (observe for point in experiment.points for observe in point.plan.observes()):
        batches = {forward.role: forward.batch for forward in observe.forwards}
        key = (observe.path, observe.example_ids, *batches.items())
        if key in found:
            continue
        found[key] = [
            {
                "step": "/".join(observe.path),
                "example_id": example_id,
                "roles": {role: _text(batch.rows[row], checkpoint) for role, batch in batches.items()},
            }
            for row, example_id in enumerate(observe.example_ids)
        ]
    return [row for rows in found.values() for row in rows]


def _text(text: Text, checkpoint: Checkpoint) -> dict[str, object]:
    return {
        "text": text.text,
        "prefix": text.prefix,
        "ids": list(text.ids),
        "tokens": [checkpoint.token_text(token) for token in text.ids],
        "turns": [{"name": turn.name, "text": text.text[turn.start : turn.end]} for turn in text.segments],
    }


def _forward(forward: Forward) -> dict[str, object]:
    return {
        "model": forward.model,
        "role": forward.role,
        "rows": len(forward.batch.rows),
        "tokens": forward.batch.width,
        "decode": forward.decode,
        **({"generation": settings_record(forward.decoding)} if forward.decode else {}),
        "writes": [
            {**_tap(write), "mechanism": write.mechanism.spelled(spelled_operand(write.operand))}
            for write in forward.writes
        ],
        "reads": [{**_tap(read), "view": read.view} for read in forward.reads],
    }


def _tap(tap: Read | Write) -> dict[str, object]:
    windows = [{"reason": str(w)} if isinstance(w, Reason) else list(w) for w in tap.windows]
    return {"name": tap.name, "at": tap.place.spelled(), "pos": tap.pos.compact(), "windows": windows}
