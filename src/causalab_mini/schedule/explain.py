"""A schedule as text: what really runs, what is shared with what, and what it costs beside the naive one.

schedule: fast (last bit)
  pass trim (exact)
  call 0: 4 lanes x 8 tokens  for 'original' on 'counterfactual' at 3 points  1 MB
  call 1: 4 lanes x 1 tokens  after up to 7 of call 0  decode=3  for 'patched' on 'base' at 3 points  1 MB
2 calls, 432 token-layers (naive: 6 calls, 1440 token-layers, 30%)
"""

from __future__ import annotations

from collections.abc import Iterator

from causalab_mini.plan.nodes import Observe
from causalab_mini.schedule.ir import Call, ObserveKey
from causalab_mini.schedule.prepare import Prepared


def explain_schedule(prepared: Prepared) -> str:
    """The whole schedule, one line a call, without a final newline."""
    lines = [f"schedule: {prepared.mode} ({prepared.promise.value})"]
    lines += [f"  pass {step.name} ({step.promise.value})" for step in prepared.passes]
    purposes = _purposes(prepared)
    for index, call in enumerate(prepared.schedule.calls):
        lines.append("  ".join(_parts(prepared, index, call, purposes)))
    cost, naive = prepared.planned, prepared.naive
    share = f", {cost.token_layers / naive.token_layers:.0%}" if naive.token_layers else ""
    lines.append(
        f"{cost.calls} calls, {cost.token_layers} token-layers "
        f"(naive: {naive.calls} calls, {naive.token_layers} token-layers{share})"
    )
    return "\n".join(lines)


def _parts(prepared: Prepared, index: int, call: Call, purposes: dict[int, dict[str, set[str]]]) -> Iterator[str]:
    schedule = prepared.schedule
    lanes = [schedule.lanes[number] for number in call.lanes]
    yield f"  call {index}: {len(lanes)} lanes x {call.width} tokens"
    if call.cached:
        call_of = {number: at for at, one in enumerate(schedule.calls) for number in one.lanes}
        before = sorted({call_of[lane.parent] for lane in lanes if lane.parent is not None and lane.start})
        yield f"after up to {call.cached} of call {', '.join(map(str, before))}"
    entries = sorted({lane.entry.layer for lane in lanes if lane.entry is not None})
    if entries:
        yield f"entering at block {entries[0]}" + (f"..{entries[-1]}" if len(entries) > 1 else "")
    if steps := schedule.steps(call):
        yield f"decode={steps}"
    served: dict[str, set[str]] = {}
    for number in call.lanes:
        for forward, points in purposes.get(number, {}).items():
            served.setdefault(forward, set()).update(points)
    for forward, points in served.items():
        yield f"for {forward}" + (f" at {len(points)} points" if points != {""} else "")
    if not served:
        yield "for what later calls have in common"
    yield f"{max(1, round(prepared.bytes(call) / 1e6))} MB"


def _purposes(prepared: Prepared) -> dict[int, dict[str, set[str]]]:
    """For every lane, the forwards it stands for and at which points."""
    observes: dict[ObserveKey, Observe] = {
        (point.label, observe.path): observe for point in prepared.points for observe in point.plan.observes()
    }
    found: dict[int, dict[str, set[str]]] = {}
    for (key, index), lanes in prepared.schedule.bindings.items():
        forward = observes[key].forwards[index]
        name = f"'{forward.model}' on '{forward.role}'"
        for number in lanes:
            found.setdefault(number, {}).setdefault(name, set()).add(key[0])
    return found
