"""Saves: values that a step makes, in files of their own inside the point's directory."""

from __future__ import annotations

from collections.abc import Iterator

from causalab_mini.errors import Problem, join, suggest
from causalab_mini.spec.check.names import Here
from causalab_mini.spec.children import Child, children, meant
from causalab_mini.spec.document import Observe, Save

TABLE = ".json"
TENSOR = ".safetensors"
OWN = ("document.json", "run.json", "summary.csv", "summary.json")
LONGEST = 200


def check(here: Here) -> Iterator[Problem]:
    """Every save of every step."""
    taken: dict[str, str] = {}
    for name, step in here.document.steps.items():
        own = children(here.document, name)
        for i, save in enumerate(step.saves):
            path = join("steps", name, "saves", i)
            makers = [child for child in own if meant(save, child.name, child.produced) is not None]
            yield from _value(here, step, save, own, makers, f"{path}.value")
            faults = list(_file(save.file_path, f"{path}.file_path"))
            yield from faults
            if not faults:
                yield from _kind(save, makers, f"{path}.file_path")
                yield from _unique(name, step, save, makers, f"{path}.file_path", taken)


def _value(
    here: Here, step: Observe, save: Save, own: tuple[Child, ...], makers: list[Child], path: str
) -> Iterator[Problem]:
    if makers or not own or any(part.startswith(child.path) for part in here.broken for child in own):
        return
    if save.value.endswith(".generated") and not any(not child.intervention.decode.never for child in own):
        message = f"nothing is generated here, so there is no '{save.value}'"
        yield Problem(path, message, 'give the intervention "decode": the number of tokens to generate')
        return
    values = {value for child in own for value in child.produced}
    if step.nested and len(own) > 1:
        values |= {f"{child.name}.{value}" for child in own for value in child.produced}
    yield Problem(path, f"this step makes no '{save.value}'", suggest(save.value, values, "values"))


def _file(file: str, path: str) -> Iterator[Problem]:
    parts = file.split("/")
    inside = 'name a file inside it, for example "p_answer.json"'
    if file.startswith("/") or "\\" in file or ":" in file or ".." in parts:
        yield Problem(path, f"'{file}' leaves the point's directory", inside)
    elif not all(parts) or any(part.startswith(".") for part in parts):
        yield Problem(path, f"'{file}' has an empty or hidden part", inside)
    elif not file.isprintable() or any(len(part.encode()) > LONGEST for part in parts):
        yield Problem(path, "the file name has characters that do not print, or is too long", inside)
    elif file.casefold() in OWN:
        yield Problem(path, f"'{file}' is a file the run writes itself", "give it another name")


def _kind(save: Save, makers: list[Child], path: str) -> Iterator[Problem]:
    if not makers:
        if not save.file_path.endswith((TABLE, TENSOR)):
            yield Problem(path, f"'{save.file_path}' is neither a table nor tensors", f"end it in {TABLE} or {TENSOR}")
        return
    child = makers[0]
    is_table = meant(save, child.name, child.produced) in child.intervention.metrics
    wanted, what = (TABLE, "a table") if is_table else (TENSOR, "a tensor")
    stem = save.file_path.rsplit(".", 1)[0]
    if not save.file_path.endswith(wanted) or not stem.rsplit("/", 1)[-1]:
        message = f"'{save.value}' is {what}, and '{save.file_path}' does not end in {wanted}"
        yield Problem(path, message, f"write '{stem}{wanted}'")


def _unique(
    name: str, step: Observe, save: Save, makers: list[Child], path: str, taken: dict[str, str]
) -> Iterator[Problem]:
    folders = [f"{name}/{child.name}/" for child in makers] if step.nested else [""]
    for folder in folders:
        # Some file systems take upper and lower case for the same.
        file = (folder + save.file_path).casefold()
        other = next((theirs for theirs in taken if _clash(file, theirs)), None)
        if other is not None:
            yield Problem(
                path, f"'{folder}{save.file_path}' is written by {taken[other]} too", "give each its own file"
            )
            return
        taken[file] = path.removesuffix(".file_path")


def _clash(one: str, other: str) -> bool:
    """Whether two files cannot both be: one name, or one is a directory of the other."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
