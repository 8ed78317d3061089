"""Featurizers as spaces: which kind, how wide, from which file, checked against the site and the checkpoint.

Reads headers of tensor files and no tensor library. A file may carry a stamp in its metadata; what it says must be
what the document says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.data import tensors
from causalab_mini.data.tensors import TensorFile
from causalab_mini.errors import PlanRefusal, Problem
from causalab_mini.plan.nodes import Place, Read, Space
from causalab_mini.plan.problems import Problems
from causalab_mini.spec import featurizers
from causalab_mini.spec.document import Document, Featurizer, Site
from causalab_mini.vocabulary import featurizers as kinds
from causalab_mini.vocabulary.featurizers import IDENTITY, Slot

STAMP = ("model", "revision", "resolved", "component", "layer", "heads", "units", "kind", "width")
"""The keys of a stamp, in the order in which mismatches are told."""


def stamp(site: Site, kind: str, width: int) -> dict[str, str]:
    """A stamp's keys but the model's: where and of which kind a featurizer's file is."""
    layer = site.layers[0] if isinstance(site.layers, tuple) and site.layers else None
    said = {
        "component": site.component,
        "layer": None if layer is None else str(layer),
        "heads": _listed(site.heads),
        "units": _listed(site.units),
    }
    return {**{key: value for key, value in said.items() if value is not None}, "kind": kind, "width": str(width)}


def read_width(checkpoint: Checkpoint, read: Read) -> int:
    """How many entries a read's value has, as its view and featurizer show it."""
    if read.view != "raw":
        return checkpoint.vocab
    return place_width(checkpoint, read.place) if read.space is None else read.space.k


def place_width(checkpoint: Checkpoint, place: Place) -> int:
    """How many entries the value at a place has."""
    return checkpoint.width(place.component) if place.columns is None else len(place.columns)


def _listed(numbers: tuple[int, ...] | None) -> str | None:
    return None if numbers is None else ",".join(map(str, numbers))


@dataclass
class Files:
    """The tensor files of an experiment, each read once. `document`: its path, which files are relative to."""

    document: Path | None = None
    warnings: dict[str, None] = field(default_factory=dict[str, None])
    _found: dict[str, TensorFile] = field(default_factory=dict[str, TensorFile])
    _skews: dict[tuple[str, str], str | None] = field(default_factory=dict[tuple[str, str], "str | None"])

    def get(self, name: str) -> TensorFile:
        """The file a document calls `name`: from the document, then from the working directory."""
        if name not in self._found:
            bases = ([] if self.document is None else [self.document.parent]) + [Path()]
            places = [base / name for base in bases if (base / name).is_file()]
            if not places:
                hint = "paths are relative to the document, then to the working directory"
                raise PlanRefusal(Problem("", f"there is no file '{name}'", hint))
            self._found[name] = tensors.read(places[0], name)
        return self._found[name]

    def skew(self, name: str, tensor: str) -> str | None:
        """How the columns of a tensor are not orthonormal, if they are not."""
        if (name, tensor) not in self._skews:
            self._skews[name, tensor] = tensors.skew(self.get(name), tensor)
        return self._skews[name, tensor]


@dataclass
class Spaces:
    """The featurizers of one point."""

    document: Document
    checkpoint: Checkpoint
    files: Files
    problems: Problems
    _made: dict[str, Space | None] = field(default_factory=dict[str, "Space | None"])

    def get(self, name: str, site: Site, width: int) -> Space | None:
        """The space of a featurizer at its site, `width` wide; None for the value itself, or after a problem."""
        declared = self.document.featurizers.get(name)
        if declared is None or declared.kind == IDENTITY:
            return None
        if name not in self._made:
            self._made[name] = None
            with self.problems.under("featurizers", name):
                self._made[name] = self._space(name, declared, site, width)
        return self._made[name]

    def rest(self) -> None:
        """Look at the files of featurizers that nothing uses."""
        for name, declared in self.document.featurizers.items():
            if name not in self._made and declared.file_path is not None:
                with self.problems.under("featurizers", name, "file_path"):
                    _matched(featurizers.of(declared), self.files.get(declared.file_path), declared.file_path)

    def _space(self, name: str, declared: Featurizer, site: Site, width: int) -> Space:
        node = featurizers.of(declared)
        if declared.file_path is None:
            if node.k is not None and node.k > width:
                message = f"k is {node.k}, and the site is {width} wide"
                raise PlanRefusal(Problem("k", message, f"name at most {width}"))
            return Space(name, node, width, node.k or width)
        shown = declared.file_path
        before = len(self.problems.found)
        with self.problems.within("file_path"):
            file = self.files.get(shown)
            tensor_of = _matched(node, file, shown)
            k = self._shapes(node, file, tensor_of, width, shown)
            self._stamped(declared, file, site, width)
            if "basis" in tensor_of:
                skew = self.files.skew(shown, tensor_of["basis"])
                if skew is not None:
                    message = f"the columns of '{tensor_of['basis']}' in '{shown}' are not orthonormal: {skew}"
                    raise PlanRefusal(Problem("", message, "a basis is made of orthonormal columns"))
            if len(self.problems.found) == before:
                stamped = any(key in file.metadata for key in STAMP)
                own = node.model_copy(update={"k": k if node.sized else None})
                return Space(name, own, width, k, file.sha256, file.path, tuple(tensor_of.items()), stamped)
        raise PlanRefusal(())  # What is wrong with the file has been told.

    def _shapes(
        self, node: kinds.Featurizer, file: TensorFile, tensor_of: Mapping[str, str], width: int, shown: str
    ) -> int:
        """Check every tensor's shape; k."""
        known = {"d": width} if node.k is None else {"d": width, "k": node.k}
        source = {"d": "the site is {} wide", "k": "k is {}"}
        for slot in node.slots:
            if slot.name not in tensor_of:
                continue
            name = tensor_of[slot.name]
            shape = file.tensors[name].shape
            wanted = "[" + ", ".join(slot.axes) + "]"
            if len(shape) != len(slot.axes):
                message = f"the tensor '{name}' of '{shown}' is {list(shape)}, and {wanted} is needed"
                raise PlanRefusal(Problem("", message, f"the kind is {node.keyword}: {node.formula}"))
            for axis, size in zip(slot.axes, shape, strict=True):
                if known.setdefault(axis, size) != size:
                    turned = (
                        " (it may be transposed)" if shape[::-1] == tuple(known.get(a, -1) for a in slot.axes) else ""
                    )
                    why = source[axis].format(known[axis])
                    message = f"the tensor '{name}' of '{shown}' is {list(shape)} for {wanted}, and {why}{turned}"
                    raise PlanRefusal(Problem("", message, "name a file made for this site"))
        k = known.get("k", width)
        if k < 1 or ("basis" in tensor_of and k > width):
            raise PlanRefusal(Problem("", f"'{shown}' has {k} directions, and the site is {width} wide", None))
        return k

    def _stamped(self, declared: Featurizer, file: TensorFile, site: Site, width: int) -> None:
        found = {key: file.metadata[key] for key in STAMP if key in file.metadata}
        shown = declared.file_path
        if not found:
            self.files.warnings[f"'{shown}' has no stamp: nothing says which model and site it was made for"] = None
            return
        expected = {**stamp(site, declared.kind, width), **self._model(found)}
        for key in STAMP:
            said, asked = found.get(key), expected.get(key)
            if said != asked and (key in found or key in ("heads", "units")) and key in {**found, **expected}:
                ours = "none" if asked is None else f"'{asked}'"
                theirs = "none" if said is None else f"'{said}'"
                message = f"'{shown}' was made for another {key}: its stamp says {theirs}, the document says {ours}"
                self.problems.add(message, "name a file made for this model and site")

    def _model(self, found: Mapping[str, str]) -> dict[str, str]:
        """The model's part of the stamp; a folder is named by the digest of its files and has no revision."""
        own = self.checkpoint.resolved or self.checkpoint.digest()
        # A commit and a digest of files name the same thing and cannot be compared.
        resolved = {"resolved": own if len(own) == len(said) else said} if (said := found.get("resolved")) else {}
        if self.checkpoint.source != "folder":
            return {"model": self.checkpoint.key, "revision": self.checkpoint.revision, **resolved}
        own = {"model": f"folder:{self.checkpoint.digest()}"} if "model" in found else {}
        return {**own, **resolved, **({"revision": found["revision"]} if "revision" in found else {})}


def _matched(node: kinds.Featurizer, file: TensorFile, shown: str) -> dict[str, str]:
    """The file's tensor for every slot. A file with one tensor may name it anything; `x.basis` is a basis too."""
    names = list(file.tensors)
    needed = [slot for slot in node.slots if not slot.optional]
    if len(names) == 1 and len(needed) == 1:
        return {needed[0].name: names[0]}
    tensor_of = {slot.name: name for slot in node.slots if (name := _named(slot, names)) is not None}
    missing = [slot.name for slot in needed if slot.name not in tensor_of]
    if missing:
        has = ", ".join(f"'{name}'" for name in names[:6]) or "nothing"
        message = f"'{shown}' has no tensor '{missing[0]}'; it has {has}"
        wanted = ", ".join(f"{slot.name} [{', '.join(slot.axes)}]" for slot in needed)
        raise PlanRefusal(Problem("", message, f"the kind {node.keyword} needs {wanted}"))
    strange = [name for name in names if name not in tensor_of.values()]
    if strange:
        message = f"'{shown}' has a tensor '{strange[0]}', which the kind {node.keyword} does not use"
        raise PlanRefusal(Problem("", message, f"its tensors are: {', '.join(slot.name for slot in node.slots)}"))
    return tensor_of


def _named(slot: Slot, names: list[str]) -> str | None:
    ending = [name for name in names if name.endswith(f".{slot.name}")]
    return slot.name if slot.name in names else ending[0] if len(ending) == 1 else None
