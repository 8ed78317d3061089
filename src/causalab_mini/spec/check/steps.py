"""Steps: interventions that are there, rows for their roles, outputs and references to earlier ones, saves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from causalab_mini.errors import Problem, join, suggest
from causalab_mini.spec.check import positions, writes
from causalab_mini.spec.check.names import Here, Scope, reserved
from causalab_mini.spec.children import Child, children
from causalab_mini.spec.document import Document, Intervention, Observe, Output
from causalab_mini.spec.forwards import forwards


@dataclass(frozen=True)
class _Published:
    """An output of a step, and the child that makes it."""

    step: str
    child: Child
    output: str


@dataclass(frozen=True)
class Inline:
    """An intervention that stands in a step, and where."""

    path: str
    intervention: Intervention


def inline(document: Document) -> Iterator[Inline]:
    """Every intervention that stands in a step instead of under `interventions`."""
    for name, step in document.steps.items():
        used = step.interventions
        if isinstance(used, Intervention):
            yield Inline(f"steps.{name}.interventions", used)
        elif isinstance(used, tuple):
            for i, one in enumerate(used):
                if isinstance(one, Intervention):
                    yield Inline(join("steps", name, "interventions", i), one)


def check(here: Here) -> Iterator[Problem]:
    """Every step, in order: later ones may use what earlier ones publish."""
    earlier: list[_Published] = []
    used: set[str] = set()
    everything = {name: children(here.document, name) for name in here.document.steps}
    for name, step in here.document.steps.items():
        path = f"steps.{name}"
        yield from _used(here, step, f"{path}.interventions")
        yield from _rows(here, step, everything[name], f"{path}.rows")
        yield from _outputs(here, step, everything[name], f"{path}.outputs")
        for child in everything[name]:
            used.add(child.path)
            yield from _references(here, child, earlier, everything)
        earlier += [_Published(name, child, output) for child in everything[name] for output in child.outputs]
    for name, intervention in here.document.interventions.items():
        path = f"interventions.{name}"
        if path not in used:
            yield from _references(here, Child(name, path, intervention, {}, ()), earlier, everything)


def _used(here: Here, step: Observe, path: str) -> Iterator[Problem]:
    used, known = step.interventions, here.document.interventions
    if used is None:
        if path in here.broken or "interventions" in here.broken or len(known) == 1:
            return
        if any(part.startswith("interventions.") for part in here.broken):
            return
        if known:
            yield Problem(path, "the step says no intervention, and there are several", _choices(known))
        else:
            yield Problem(path, "the step says no intervention, and the document declares none", "declare one")
        return
    several = used if isinstance(used, tuple) else (used,)
    if not several:
        yield Problem(path, "the list of interventions is empty", "name at least one")
    for i, one in enumerate(several):
        at = join(path, i) if isinstance(used, tuple) else path
        if isinstance(one, str):
            yield from here.undeclared(at, "intervention", one, "interventions", known)
            if one in several[:i]:
                yield Problem(at, f"the intervention '{one}' stands there twice", "keep one")


def _choices(known: Mapping[str, Intervention]) -> str:
    return f"name one of: {', '.join(known)}"


def _rows(here: Here, step: Observe, own: tuple[Child, ...], path: str) -> Iterator[Problem]:
    for role, ref in step.rows.items():
        yield from here.undeclared(f"{path}.{role}", "role", role, "roles", here.document.roles)
        yield from _ref(ref, f"{path}.{role}")
    if path in here.broken:
        return
    for child in own:
        for role in dict.fromkeys(key.role for key in forwards(child.intervention)):
            known = role in here.document.roles or f"roles.{role}" in here.broken or "roles" in here.broken
            if known and role not in step.rows and f"{path}.{role}" not in here.broken:
                message = f"the role '{role}' of the intervention '{child.name}' has no rows"
                yield Problem(path, message, f'add "{role}": "directory/table"')


def _ref(ref: str, path: str) -> Iterator[Problem]:
    table = ref.split("#")[0]
    parts = table.split("/")
    if "\\" in table or ":" in table or table.startswith("/") or ".." in parts:
        message = f"the table '{ref}' is outside the data root"
        yield Problem(path, message, 'name a table under it: "directory/table" or "directory/table#split"')
    elif len(parts) < 2 or not all(parts):
        yield Problem(path, f"'{ref}' is not a table", 'a table is "directory/table" or "directory/table#split"')


def _outputs(here: Here, step: Observe, own: tuple[Child, ...], path: str) -> Iterator[Problem]:
    yield from reserved(path, step.outputs)
    for name, output in step.outputs.items():
        reads = {read for child in own for read in child.intervention.reads}
        open_ended = any(part.startswith(f"{child.path}.reads") for child in own for part in here.broken)
        if own and output.read not in reads and not open_ended:
            message = f"no intervention of this step has a read '{output.read}'"
            yield Problem(f"{path}.{name}", message, suggest(output.read, reads, "reads"))
        yield from _reduced(output, f"{path}.{name}")
        taken = [
            (child, child.intervention.reads[output.read]) for child in own if output.read in child.intervention.reads
        ]
        if output.reduce == "pca" and any(
            Scope(here, child.intervention, child.path).stacked(read) for child, read in taken
        ):
            message = f"a pca is of the values of one layer, and '{output.read}' is read at several"
            yield Problem(f"{path}.{name}.reduce", message, 'read it at one layer, or sweep: {"sweep": [0, 1]}')
        components = [here.component(read.site) for _, read in taken]
        if output.reduce == "pca" and any(component is not None and component.pattern for component in components):
            message = f"'{output.read}' holds attention patterns, of which every row has its own width"
            yield Problem(f"{path}.{name}.reduce", message, "publish it with none or mean")
        held = next((component for component in components if component is not None and component.ids), None)
        if output.reduce != "none" and held is not None:
            message = f"'{output.read}' holds {held.ids}, of which there is no {output.reduce}"
            yield Problem(f"{path}.{name}.reduce", message, "publish it with none")
        for child in own:
            if name in child.intervention.metrics:
                message = f"the output '{name}' has the name of a metric of '{child.name}'"
                yield Problem(f"{path}.{name}", message, "give it another name")


def _reduced(output: Output, path: str) -> Iterator[Problem]:
    if output.reduce == "pca" and output.k is None:
        yield Problem(f"{path}.k", "how many directions a pca has is not said", 'give "k": 1')
    elif output.reduce == "pca" and output.k is not None and output.k < 1:
        yield Problem(f"{path}.k", f"a pca has at least 1 direction, and k is {output.k}", "name at least 1")
    elif output.reduce != "pca" and output.k is not None:
        yield Problem(f"{path}.k", f"the reduction '{output.reduce}' has no 'k'", "leave it out")


def _references(
    here: Here, child: Child, earlier: list[_Published], everything: Mapping[str, tuple[Child, ...]]
) -> Iterator[Problem]:
    for name, write in child.intervention.writes.items():
        ref = write.operand_output
        if ref is None:
            continue
        path = f"{child.path}.writes.{name}"
        found = [published for published in earlier if published.output == ref]
        if len(found) == 1:
            output = found[0].child.outputs[ref]
            if output.reduce == "pca":
                message = f"'{ref}' is a basis, which is no operand"
                hint = "save it, and name the file in a featurizer of kind pca"
                yield Problem(f"{path}.operand", message, hint)
                continue
            theirs = Scope(here, found[0].child.intervention, found[0].child.path)
            read = theirs.intervention.reads[output.read]
            width = positions.width(read.pos, theirs.decode)
            if output.reduce == "mean" and read.pos.ragged:
                width = 1
            ours = Scope(here, child.intervention, child.path)
            yield from writes.operand(ours, write, ref, read, path, width)
        elif found:
            makers = ", ".join(f"'{published.child.name}' in the step '{published.step}'" for published in found)
            yield Problem(
                f"{path}.operand", f"the output '{ref}' is made {len(found)} times: by {makers}", "rename one"
            )
        else:
            yield from _unpublished(here, ref, f"{path}.operand", earlier, everything)


def _unpublished(
    here: Here, ref: str, path: str, earlier: list[_Published], everything: Mapping[str, tuple[Child, ...]]
) -> Iterator[Problem]:
    if any(part == "steps" or part.startswith("steps.") for part in here.broken):
        return
    later = [step for step, own in everything.items() if any(ref in child.outputs for child in own)]
    if later:
        message = f"the output '{ref}' is made by the step '{later[0]}', which does not come before"
        yield Problem(path, message, "steps run in the order they stand in the document")
    else:
        names = {published.output for published in earlier}
        yield Problem(path, f"no earlier step has an output '{ref}'", suggest(ref, names, "outputs"))
