"""A plan as text: every step, forward and tap, in the order they run.

<root>: Plan
  index=0: Plan
    score: Observe  metrics=['p_answer/token_prob']  saves=['p_answer.json']
        forward 'patched' on 'base'  (4 rows x 11 tokens)  decode=3
          write 'patch' at block_output[0] pos={index:-1} swap(v_cf) via 'identity'
          read  'logits' at lm_head @step 0 pos={generated index:0} via 'identity'
"""

from __future__ import annotations

from collections.abc import Iterator

from causalab_mini.frames import continuation
from causalab_mini.plan.nodes import (
    Forward,
    Observe,
    Operand,
    OutputOperand,
    Plan,
    Read,
    ReadOperand,
    Score,
    Write,
)
from causalab_mini.vocabulary.components import network_order
from causalab_mini.vocabulary.reasons import Reason


def explain(root: Plan) -> str:
    """The whole tree, one line a node, without a final newline."""
    return "\n".join(_node(root, 0))


def _node(node: Plan | Observe, depth: int) -> Iterator[str]:
    pad = "  " * depth
    if isinstance(node, Plan):
        yield f"{pad}{node.name}: Plan"
        for child in node.children:
            yield from _node(child, depth + 1)
        return
    parts = [f"{node.name}: Observe", f"metrics={[_score(score, node) for score in node.scores]}"]
    if node.outputs:
        parts.append(f"outputs={[publish.name for publish in node.outputs]}")
    if node.saves:
        parts.append(f"saves={[save.file_path for save in node.saves]}")
    yield pad + "  ".join(parts)
    for forward in node.forwards:
        yield from _forward(forward, pad + "    ")


def _score(score: Score, observe: Observe) -> str:
    name = f"{score.name}/{score.metric.keyword}"
    rows = scored_rows(score, observe)
    return name if len(rows) == len(observe.example_ids) else f"{name} rows={list(rows)}"


def scored_rows(score: Score, observe: Observe) -> tuple[int, ...]:
    """The rows that can have a value, as far as is known before the run."""
    reads = {read.name: read for forward in observe.forwards for read in forward.reads}
    windows = [reads[score.metric.of].windows]
    if score.metric.compared is not None:
        windows.append(reads[score.metric.compared].windows)
    columns = [*windows, *(ids for _, ids in score.answers)]
    return tuple(
        row for row in range(len(observe.example_ids)) if not any(isinstance(column[row], Reason) for column in columns)
    )


def _forward(forward: Forward, pad: str) -> Iterator[str]:
    line = f"{pad}forward '{forward.model}' on '{forward.role}'"
    line += f"  ({len(forward.batch.rows)} rows x {forward.batch.width} tokens)"
    yield line + _decoding(forward)
    taps: list[tuple[tuple[object, ...], str]] = []
    for order, write in enumerate(forward.writes):
        taps.append((_order(write, forward, 0, order), f"write '{write.name}' {_at(write, forward)} {_change(write)}"))
    for read in forward.reads:
        view = "" if read.view == "raw" else f" as {read.view}"
        taps.append((_order(read, forward, 1, 0), f"read  '{read.name}' {_at(read, forward)} {_via(read)}{view}"))
    for _, line in sorted(taps):
        yield f"{pad}  {line}"


def _decoding(forward: Forward) -> str:
    if not forward.decode:
        return ""
    how = "  eos=stop" if forward.decoding.stops else ""
    if forward.decoding.column is not None:
        how = f"  force={forward.decoding.column}"
    return f"  decode={forward.decode}{how}"


def _order(tap: Read | Write, forward: Forward, kind: int, order: int) -> tuple[object, ...]:
    """Prompt frame, then every step, then steps ascending; inside each by network order, writes before reads."""
    steps = generated_steps(tap, forward)
    when = (0, 0) if steps is None else (1, 0) if _every(tap, forward) else (2, steps[0] if steps else 0)
    first = min(tap.place.layers, default=tap.place.layer)
    return (when, network_order(tap.place.component, first), kind, order, tap.name)


def generated_steps(tap: Read | Write, forward: Forward) -> tuple[int, ...] | None:
    """The steps a tap acts at, or None for a tap in the prompt."""
    if not tap.pos.generated:
        return None
    return tuple(range(forward.decode)) if tap.pos.deferred else continuation.steps(tap.pos, forward.decode)


def _every(tap: Read | Write, forward: Forward) -> bool:
    return tap.pos.deferred or tap.pos.all is True or generated_steps(tap, forward) == tuple(range(forward.decode))


def _at(tap: Read | Write, forward: Forward) -> str:
    place = tap.place.spelled()
    limits = tap.place.limits()
    if limits:
        place += f" {limits}"
    return f"at {place}{_when(tap, forward)} pos={tap.pos.compact()}"


def _when(tap: Read | Write, forward: Forward) -> str:
    steps = generated_steps(tap, forward)
    if steps is None:
        return ""
    if tap.pos.deferred:
        return f" over {forward.decode} steps"
    if tap.pos.all:
        return " @step all"
    if len(steps) == 1:
        return f" @step {steps[0]}"
    return f" @step {steps[0]}..{steps[-1]}"


def _change(write: Write) -> str:
    features = "" if write.features is None else f" on its features {list(write.features)}"
    reach = " for this forward alone" if write.place.component.passing else ""
    return f"{write.mechanism.spelled(spelled_operand(write.operand))} {_via(write)}{features}{reach}"


def spelled_operand(operand: Operand) -> str | None:
    """An operand as a plan prints it: a read's name, a reference, a number."""
    match operand:
        case ReadOperand(read):
            return read
        case OutputOperand(path, name):
            return f"ref {'/'.join(path)}:{name}"
        case None:
            return None
        case number:
            return repr(float(number))


def _via(tap: Read | Write) -> str:
    return f"via '{tap.featurizer}'"
