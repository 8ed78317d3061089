"""What a step runs: one child for each of its interventions, and the values and files of each.

A bare name in a step's outputs and saves means every child that has it; `<intervention>.<value>` means one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from causalab_mini.errors import join
from causalab_mini.spec.document import Document, Intervention, Output, Save
from causalab_mini.spec.forwards import generated


@dataclass(frozen=True)
class Child:
    """One intervention of a step: its name, where it stands in the document, and what it keeps.

    `outputs` are those of the step whose read this intervention has; a save's `value` is one of `produced`.
    """

    name: str
    path: str
    intervention: Intervention
    outputs: Mapping[str, Output]
    saves: tuple[Save, ...]

    @property
    def produced(self) -> tuple[str, ...]:
        """The values it makes: metrics, outputs, continuations."""
        return produced(self.intervention, self.outputs)


def produced(intervention: Intervention, outputs: Mapping[str, Output]) -> tuple[str, ...]:
    """The values an intervention makes: metrics, outputs, continuations."""
    return (*intervention.metrics, *outputs, *generated(intervention))


def children(document: Document, step: str) -> tuple[Child, ...]:
    """The children of a step, in order. A name that is not declared has no child; `spec.check` refuses it.

    An intervention that stands in the step is named after it: `<step>`, or `<step>[i]` in a list.
    """
    node = document.steps[step]
    used = node.interventions
    if used is None:
        used = next(iter(document.interventions)) if len(document.interventions) == 1 else ()
    found: list[tuple[str, str, Intervention]] = []
    for i, one in enumerate(used if isinstance(used, tuple) else (used,)):
        if isinstance(one, Intervention):
            here = (i,) if node.nested else ()
            found.append((join(step, *here), join("steps", step, "interventions", *here), one))
        elif one in document.interventions:
            found.append((one, join("interventions", one), document.interventions[one]))
    return tuple(_child(name, path, one, node.outputs, node.saves) for name, path, one in found)


def _child(
    name: str, path: str, intervention: Intervention, outputs: Mapping[str, Output], saves: tuple[Save, ...]
) -> Child:
    own = {key: output for key, output in outputs.items() if output.read in intervention.reads}
    values = produced(intervention, own)
    kept = [Save(value=value, file_path=save.file_path) for save in saves if (value := meant(save, name, values))]
    return Child(name, path, intervention, own, tuple(kept))


def meant(save: Save, child: str, values: tuple[str, ...]) -> str | None:
    """The value of `child` that a save means, or None where it means none of this child's."""
    if save.value in values:
        return save.value
    bare = save.value.removeprefix(f"{child}.")
    return bare if bare != save.value and bare in values else None
