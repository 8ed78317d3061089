"""Which forwards an intervention has, and in which order they can run."""

from __future__ import annotations

from typing import NamedTuple

from causalab_mini.spec.document import ORIGINAL, Intervention


class ForwardKey(NamedTuple):
    """One model on one role."""

    model: str
    role: str


def forwards(intervention: Intervention) -> tuple[ForwardKey, ...]:
    """Every (model, role) a read uses and every declared model on its role, in running order.

    A forward comes after those its writes' operands are read in; among those that could run at the same time,
    `original` comes first and then the names decide. The operands must be free of cycles (`spec.check` sees to it).
    """
    keys = {ForwardKey(read.model, read.input) for read in intervention.reads.values()}
    keys |= {ForwardKey(name, model.input) for name, model in intervention.models.items()}
    rank: dict[str, int] = {}
    ranked = {key: _rank(intervention, key.model, rank) for key in keys}
    return tuple(sorted(keys, key=lambda key: (ranked[key], key.model != ORIGINAL, key.model, key.role)))


def sources(intervention: Intervention, model: str) -> dict[str, str]:
    """The models whose reads `model` needs: read name by source model, one read for each."""
    declared = intervention.models.get(model)
    found: dict[str, str] = {}
    for name in declared.writes if declared else ():
        write = intervention.writes.get(name)
        operand = write.operand_read if write else None
        if operand in intervention.reads:
            found.setdefault(intervention.reads[operand].model, operand)
    return found


def _rank(intervention: Intervention, model: str, known: dict[str, int]) -> int:
    if model not in known:
        known[model] = 0
        known[model] = max(
            (_rank(intervention, source, known) + 1 for source in sources(intervention, model)), default=0
        )
    return known[model]


def generated(intervention: Intervention) -> dict[str, ForwardKey]:
    """The continuations an intervention produces, by the name a save gives them; empty where it does not decode."""
    if intervention.decode.never:
        return {}
    keys = forwards(intervention)
    roles: dict[str, int] = {}
    for key in keys:
        roles[key.model] = roles.get(key.model, 0) + 1
    return {
        f"{key.model}.generated" if roles[key.model] == 1 else f"{key.model}@{key.role}.generated": key for key in keys
    }
