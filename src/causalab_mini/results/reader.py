"""The directory of a finished run, read back: summary lines, rows of metric tables, tensors.

Reads what lies open in the directory (documents, tables, tensors, summary.json, run.json) so a copy of
that will do. Knows numpy and pandas, each only where one is asked for; refuses to know torch.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from causalab_mini.errors import Problem, Refusal, nearest, suggest

if TYPE_CHECKING:
    import numpy
    import pandas

    from causalab_mini.spec.document import Document

    Array = numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.generic]]

AGAIN = "say the run again"
ROW = ("example_id", "metric", "value", "eligible")
LINE = ("point", "observe", "metric")
"""The columns without which a line of a metric table, and of a summary, tells nothing."""
Cells = dict[str, object]
"""A line of a table by its columns."""
AnyPoint: TypeAlias = str | Mapping[str, object] | None
"""A point by its label or by the values of its axes; None is the only one there is."""


@dataclass(frozen=True)
class Saved:
    """A file of a point: what it holds, and which step of the point kept it."""

    point: str
    observe: str
    value: str
    path: Path


class Results:
    """What a finished run left in `directory`. Raises `Refusal` where none has finished.

    `points` are labels in the experiment's order, "" the only one without a sweep; `axes` the names of what was swept.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.document = _object(self._read("document.json"))
        self.run = _object(self._read("run.json"))
        self.lines: tuple[Cells, ...] = _lines(directory / "summary.json", self._read("summary.json"), LINE)
        self.axes = _axes(self.lines)
        self.points = self._points()

    def __repr__(self) -> str:
        points = f"{len(self.points)} points over {', '.join(self.axes)}, " if self.axes else ""
        metrics = ", ".join(dict.fromkeys(str(line["metric"]) for line in self.lines)) or "no metrics"
        return f"Results({str(self.directory)!r}: {points}{metrics})"

    @property
    def digest(self) -> str:
        """The digest of the document that was run."""
        return str(self.run["digest"])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the run had to say beside its numbers."""
        return tuple(str(warning) for warning in cast(list[object], self.run.get("warnings", [])))

    def summary(self) -> pandas.DataFrame:
        """The summary as a frame: a line per point, step and metric, axes as columns."""
        import pandas

        from causalab_mini.results.summary import OWN

        return pandas.DataFrame(self.lines, columns=None if self.lines else list(OWN))

    def table(self, metric: str | None = None, point: AnyPoint = None) -> pandas.DataFrame:
        """All saved metric tables as one frame: a line per row, metric and point, axes as columns.

        Rows without a value are there, with their reason. `metric` and `point` ask for some of them.
        """
        import pandas

        frame = pandas.DataFrame(list(self.rows(metric, point)))
        return frame.astype({"stopped_at": "Int64"}) if "stopped_at" in frame else frame

    def rows(self, metric: str | None = None, point: AnyPoint = None) -> Iterator[Cells]:
        """The lines of `table`, one by one."""
        chosen = self.points if point is None else (self.label(point),)
        files = [saved for label in chosen for saved in self.saved(label) if saved.path.suffix == ".json"]
        if metric is not None and all(saved.value != metric for saved in files):
            known = {saved.value for saved in files}
            raise Refusal(Problem("", f"there is no table of '{metric}'", suggest(metric, known, "saved metrics")))
        for saved in files:
            if metric in (None, saved.value):
                axes = self.axes_of(saved.point)
                for row in _lines(saved.path, _json(saved.path), ROW):
                    own: Cells = {"observe": saved.observe, **row}
                    apart = {f"axis.{name}" if name in own else name: value for name, value in axes.items()}
                    yield {"point": saved.point, **apart, **own}

    def tensor(self, name: str, point: AnyPoint = None, observe: str | None = None) -> Array:
        """The tensor `name` as numpy has it; its shape is told by the `dims` of its metadata.

        `point`: a label, or the values of its axes; needed where there are several. `observe`: the step, where several
        keep a tensor of that name.
        """
        from safetensors import safe_open

        with safe_open(self._file(name, point, observe), framework="numpy") as file:
            return cast("Array", file.get_tensor(name))

    def metadata(self, name: str, point: AnyPoint = None, observe: str | None = None) -> dict[str, str]:
        """What the file of a tensor says of it: dims, example ids, digest, model, dtype, site."""
        from safetensors import safe_open

        with safe_open(self._file(name, point, observe), framework="numpy") as file:
            return dict(file.metadata() or {})

    def tensors(self, point: AnyPoint = None) -> tuple[str, ...]:
        """The names of the tensors of a point."""
        return tuple(dict.fromkeys(name for saved in self._bundles(point) for name in _names(saved.path)))

    def label(self, point: AnyPoint) -> str:
        """The label of a point that is named by its label, by the values of its axes, or by being the only one."""
        if point is None:
            if len(self.points) == 1:
                return self.points[0]
            known = ", ".join(self.points[:5]) + (", …" if len(self.points) > 5 else "")
            raise Refusal(Problem("", f"there are {len(self.points)} points", f"say point=…: {known}"))
        if isinstance(point, str):
            if point in self.points:
                return point
            hint = f"did you mean '{close}'?" if (close := nearest(point, self.points)) else "results.points lists them"
            raise Refusal(Problem("", f"there is no point '{point}'", hint))
        found = [label for label in self.points if all(_is(self.axes_of(label), *item) for item in point.items())]
        if len(found) != 1:
            message = f"{len(found) or 'no'} points are at {dict(point)}"
            raise Refusal(Problem("", message, f"the axes are: {', '.join(self.axes)}"))
        return found[0]

    def axes_of(self, label: str) -> Cells:
        """The values of the axes at a point."""
        return self._at.get(label, {})

    def saved(self, label: str) -> tuple[Saved, ...]:
        """The files a point kept, in the document's order, those that are there."""
        from causalab_mini.spec.children import children

        folder = self.directory / label
        document = self._spec(folder / "document.json")
        found = (
            Saved(label, "/".join(path), save.value, folder.joinpath(*path[1:] and path, save.file_path))
            for step, node in document.steps.items()
            for child in children(document, step)
            for path in ((step, child.name) if node.nested else (step,),)
            for save in child.saves
        )
        return tuple(saved for saved in found if saved.path.is_file())

    def unit(self, observe: str, metric: str) -> str:
        """The unit of a metric of a step."""
        from causalab_mini.spec.children import children

        document = self._spec(self.directory / self.points[0] / "document.json")
        step, _, name = observe.partition("/")
        for child in children(document, step):
            if name in ("", child.name) and metric in child.intervention.metrics:
                return child.intervention.metrics[metric].unit
        raise Refusal(Problem("", f"no step '{observe}' has a metric '{metric}'", "results.summary() lists them"))

    def _points(self) -> tuple[str, ...]:
        at: dict[str, Cells] = {}
        for line in self.lines:
            at.setdefault(str(line["point"]), {name: line[name] for name in self.axes if name in line})
        self._at = at
        folders = sorted(path.parent.name for path in self.directory.glob("*=*/document.json") if self._whole(path))
        return tuple(at) + tuple(label for label in folders if label not in at) or ("",)

    def _whole(self, document: Path) -> bool:
        """Whether a point that no summary tells of is complete; a copy without the hidden files holds no others."""
        from causalab_mini.results.layout import HIDDEN, record_path

        hidden = self.directory / HIDDEN
        return not hidden.is_dir() or (self.directory / record_path(document.parent.name)).is_file()

    def _bundles(self, point: AnyPoint) -> Sequence[Saved]:
        return [saved for saved in self.saved(self.label(point)) if saved.path.suffix == ".safetensors"]

    def _file(self, name: str, point: AnyPoint, observe: str | None) -> Path:
        """The file with the tensor `name`."""
        bundles = self._bundles(point)
        known = {saved.path: _names(saved.path) for saved in bundles}
        found = [saved for saved in bundles if name in known[saved.path] and observe in (None, saved.observe)]
        if not found:
            names = dict.fromkeys(name for names in known.values() for name in names)
            raise Refusal(Problem("", f"no tensor '{name}' was saved there", suggest(name, names, "tensors")))
        if len({saved.observe for saved in found}) > 1:
            steps = ", ".join(saved.observe for saved in found)
            raise Refusal(Problem("", f"several steps keep a tensor '{name}'", f"say observe=…: {steps}"))
        return found[0].path

    def _read(self, name: str) -> object:
        if not self.directory.is_dir():
            raise Refusal(Problem("", f"there is no directory {self.directory}", "name the --out of a run"))
        if not (self.directory / name).is_file():
            hint = "say the run again, and it goes on where it stopped; or name the --out of another"
            raise Refusal(Problem("", f"no run has finished in {self.directory}: there is no {name}", hint))
        return _json(self.directory / name)

    @staticmethod
    def _spec(path: Path) -> Document:
        from causalab_mini.spec.document import Document

        with _intact(path):
            return Document.model_validate_json(path.read_bytes())


def _axes(lines: Sequence[Cells]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for line in lines for name in _between(line)))


def _between(line: Cells) -> list[str]:
    """A line is its point, its axes, and then the step and the rest."""
    names = list(line)
    return names[1 : names.index("observe")]


def _is(axes: Cells, name: str, value: object) -> bool:
    return name in axes and axes[name] == (list(value) if isinstance(value, tuple) else value)


def _names(path: Path) -> list[str]:
    from safetensors import safe_open

    with _intact(path), safe_open(path, framework="numpy") as file:
        return list(file.keys())


def _json(path: Path) -> object:
    with _intact(path):
        return json.loads(path.read_bytes())


def _lines(path: Path, value: object, columns: Sequence[str]) -> tuple[Cells, ...]:
    """The lines of a table; refused where they are not what a run leaves."""
    lines = cast(list[object], value) if isinstance(value, list) else [None]
    if any(not isinstance(line, dict) or any(name not in line for name in columns) for line in lines):
        raise Refusal(Problem("", f"{path} is no list of lines with {', '.join(columns)}", AGAIN))
    return tuple(cast(list[Cells], lines))


@contextmanager
def _intact(path: Path) -> Generator[None]:
    """Turn what a file says that is not there or not whole into a refusal."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, ValueError, SafetensorError) as error:
        raise Refusal(Problem("", f"{path} cannot be read: {error}", AGAIN)) from error


def _object(value: object) -> dict[str, object]:
    return cast(dict[str, object], value)
