"""Pages about a plan besides `plan.explain`: the plan as JSON, rows token by token, the schedule's calls. No torch."""

from __future__ import annotations

from collections.abc import Iterator

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.plan.explain import generated_steps, spelled_operand
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


def rows_page(experiment: Experiment, checkpoint: Checkpoint) -> str:
    """Every position of every row: the row's tokens with their indices, under them what each tap selects."""
    lines: list[str] = []
    for point in experiment.points:
        for observe in point.plan.observes():
            name = "/".join(part for part in (point.label, *observe.path) if part)
            for forward in observe.forwards:
                lines.append(f"{name}: forward '{forward.model}' on '{forward.role}'")
                for row, example_id in enumerate(observe.example_ids):
                    lines.append(f"  {example_id}")
                    lines.append("    " + " ".join(_tokens(forward, row, checkpoint)))
                    lines += [f"      {_selection(tap, forward, row, checkpoint)}" for tap in _taps(forward)]
    return "\n".join(lines)


def _forward(forward: Forward) -> dict[str, object]:
    return {
        "model": forward.model,
        "role": forward.role,
        "rows": len(forward.batch.rows),
        "tokens": forward.batch.width,
        "decode": forward.decode,
        "writes": [
            {**_tap(write), "mechanism": write.mechanism.spelled(spelled_operand(write.operand))}
            for write in forward.writes
        ],
        "reads": [{**_tap(read), "view": read.view} for read in forward.reads],
    }


def _tap(tap: Read | Write) -> dict[str, object]:
    windows = [{"reason": str(w)} if isinstance(w, Reason) else list(w) for w in tap.windows]
    return {"name": tap.name, "at": tap.place.spelled(), "pos": tap.pos.compact(), "windows": windows}


def _taps(forward: Forward) -> Iterator[Read | Write]:
    yield from forward.writes
    yield from forward.reads


def _tokens(forward: Forward, row: int, checkpoint: Checkpoint) -> Iterator[str]:
    text = forward.batch.rows[row]
    for column, token in enumerate(text.ids):
        index = "prefix" if column < text.prefix else str(column - text.prefix)
        yield f"{index}:{checkpoint.token_text(token)!r}"


def _selection(tap: Read | Write, forward: Forward, row: int, checkpoint: Checkpoint) -> str:
    kind = "write" if isinstance(tap, Write) else "read "
    head = f"{kind} '{tap.name}' {tap.pos.compact()}:"
    window = tap.windows[row]
    if isinstance(window, Reason):
        return f"{head} {window}"
    if generated_steps(tap, forward) is not None:
        if tap.pos.deferred:
            return f"{head} every step, cut once the continuation is there"
        return f"{head} step {', '.join(map(str, window))}"
    shown = list(_tokens(forward, row, checkpoint))
    return f"{head} {' '.join(shown[column] for column in window)}"
