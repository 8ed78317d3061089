"""A run's directory: who owns it, which points are complete in it, and how files get into it.

A file that exists is whole. A point is complete when its record exists, and the record is written last. A run that is
refused, or fails before its first point, leaves the directory as it was. One run at a time.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from causalab_mini.errors import OutputRefusal, Problem, RunFailure
from causalab_mini.plan.nodes import Experiment, Observe, Point, Save
from causalab_mini.results import layout
from causalab_mini.results.bundles import write_bundle
from causalab_mini.results.completion import Completion, Standing, complete, sealed, standing
from causalab_mini.results.conditions import Conditions
from causalab_mini.results.files import partial_name, write_bytes
from causalab_mini.results.lock import DirectoryLock
from causalab_mini.results.provenance import lasting
from causalab_mini.results.records import Observed
from causalab_mini.results.strict import pretty
from causalab_mini.results.summary import SummaryLine, summary_csv, summary_json
from causalab_mini.results.tables import table_bytes

KEPT = "points that were written whole are kept: make room, or clear the way, and say the same again"


class Owner(BaseModel):
    """Whose directory it is: the experiment's digest and every file its run may have written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["causalab-mini/run/1"] = "causalab-mini/run/1"
    digest: str
    files: tuple[str, ...]


class Store:
    """The directory `out` as the place of one run of `experiment`; a context that holds the directory's lock.

    `document` are the bytes of the document as given; `conditions` everything else that numbers depend on; `stamp` goes
    into the metadata of every tensor file; `force` replaces what an earlier run left. Raises OutputRefusal on entry.
    `look` tells what would be found, and leaves no trace.
    """

    def __init__(
        self,
        out: Path,
        experiment: Experiment,
        document: bytes,
        conditions: Conditions,
        *,
        stamp: Mapping[str, str] | None = None,
        force: bool = False,
    ) -> None:
        self._out = out
        self._experiment = experiment
        self._document = document
        self._conditions = conditions
        self._stamp = dict(stamp or {})
        self._force = force
        self._begun = False
        self._made: list[Path] = []
        self._complete: dict[str, Completion] = {}
        self._lock = DirectoryLock(out / layout.LOCK)

    def __enter__(self) -> Store:
        try:
            self._refuse_unfit()
            self._make_directories()
            taken = self._lock.take()
            if taken:
                self._refuse_unfit()
        except OSError as error:
            self._forget()
            raise self._unwritable(error) from error
        except OutputRefusal:
            self._forget()
            raise
        if not taken:
            self._forget()
            raise OutputRefusal(
                Problem("", f"another run is writing to {self._out}", "wait until it ends, or choose another --out")
            )
        found = self._standings()
        self._complete = {label: each.record for label, each in found.items() if each.record is not None}
        return self

    def look(self) -> dict[str, Standing]:
        """How every point stands, by its label. Refused where a run would be; makes, writes and locks nothing."""
        try:
            self._refuse_unfit()
            layout.writable(self._out)
        except OSError as error:
            raise self._unwritable(error) from error
        return self._standings()

    def _unwritable(self, error: OSError) -> OutputRefusal:
        return OutputRefusal(Problem("", f"{self._out} cannot be written to: {error.strerror}", "choose another --out"))

    def _standings(self) -> dict[str, Standing]:
        points = self._experiment.points
        if self._force:
            there = {point.label: (self._out / layout.record_path(point.label)).exists() for point in points}
            return {label: Standing(None, "--force runs all points again", here) for label, here in there.items()}
        return {point.label: standing(self._out, point, self._conditions.of(point)) for point in points}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release(remove=not self._begun and bool(self._made))
        if not self._begun:
            self._forget()

    @property
    def kept(self) -> frozenset[str]:
        """Labels of the points that are complete."""
        return frozenset(self._complete)

    def finished(self, run: Mapping[str, object]) -> bool:
        """Whether what is written last is there and of the complete points. `run`: what run.json is to say of them."""
        expected = {layout.DOCUMENT: self._document, **self._summaries(), **self._documents()}
        if any(_content(self._out / name) != content for name, content in expected.items()):
            return False
        try:
            found = json.loads((self._out / layout.RUN).read_bytes())
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(found, dict) and lasting(found) == lasting(json.loads(pretty(run)))

    def completions(self) -> tuple[Completion, ...]:
        """The records of all complete points, in the experiment's order."""
        return tuple(self._complete[point.label] for point in self._experiment.points if point.label in self._complete)

    def write(
        self, point: Point, observed: tuple[Observed, ...], seconds: float, peak_bytes: int | None = None
    ) -> tuple[Path, ...]:
        """Write a point's files, then its record; the files' paths. `RunFailure` when the disk does not take them."""
        with self._writing():
            self._begin()
            self._drop(point)
            write_bytes(self._out / layout.document_path(point), self._document_of(point))
            for observe in point.plan.observes():
                produced = _produced_by(observe, observed)
                for save in observe.saves:
                    self._write_save(layout.save_path(point, observe, save), save, produced, point.digest)
            terms = self._conditions.of(point)
            record = complete(self._out, point, terms, observed, seconds, peak_bytes)
            write_bytes(self._out / layout.record_path(point.label), sealed(record))
        self._complete[point.label] = record
        return tuple(self._out / name for name in layout.point_files(point))

    def finish(self, run: dict[str, object]) -> tuple[Path, ...]:
        """Write the summary of all complete points, and run.json, which says that the run is over; the files' paths."""
        with self._writing():
            self._begin()
            expected = {layout.DOCUMENT: self._document, **self._documents(), **self._summaries()}
            for name, content in expected.items():
                if _content(self._out / name) != content:
                    write_bytes(self._out / name, content)
            write_bytes(self._out / layout.RUN, pretty(run))
        first = () if self._experiment.points[0].label == "" else (layout.DOCUMENT,)
        return tuple(self._out / name for name in (*first, *layout.WRITTEN_LAST))

    def summary(self) -> Sequence[SummaryLine]:
        """The lines of every complete point, kept ones included."""
        return [line for record in self.completions() for line in record.summary]

    def _document_of(self, point: Point) -> bytes:
        return point.document.encode() if point.label else self._document

    def _documents(self) -> dict[str, bytes]:
        """What the documents of all complete points hold, by their paths."""
        complete = (point for point in self._experiment.points if point.label in self._complete)
        return {layout.document_path(point): self._document_of(point) for point in complete}

    def _summaries(self) -> dict[str, bytes]:
        lines = self.summary()
        return {layout.SUMMARY_CSV: summary_csv(lines), layout.SUMMARY_JSON: summary_json(lines)}

    def _drop(self, point: Point) -> None:
        """Remove a point's record, and then what it speaks of."""
        (self._out / layout.record_path(point.label)).unlink(missing_ok=True)
        _, *saves = layout.point_files(point)
        for name in saves:
            (self._out / name).unlink(missing_ok=True)

    def _refuse_unfit(self) -> None:
        if (part := layout.too_long(self._experiment)) is not None:
            hint = "give the axes short names with 'as', or shorter values"
            raise OutputRefusal(Problem("", f"a file's name would be too long for a file system: {part}", hint))
        if self._out.exists() and not self._out.is_dir():
            raise OutputRefusal(Problem("", f"{self._out} is a file, not a directory", "choose another --out"))
        if not self._out.exists():
            return
        if (obstacle := layout.in_the_way(self._out, self._experiment)) is not None:
            raise OutputRefusal(Problem("", obstacle, "choose another --out, or move it away"))
        owner = self._owner()
        if owner is None and (self._out / layout.OWNER).exists():
            hint = "choose another --out, or remove the directory"
            raise OutputRefusal(Problem("", f"{self._out / layout.OWNER} does not say which files a run wrote", hint))
        if self._force:
            return
        if owner is None and any(not entry.name.startswith(".") for entry in self._out.iterdir()):
            hint = "choose another --out, or say --force to write there all the same"
            raise OutputRefusal(Problem("", f"{self._out} holds files that no run wrote", hint))
        if owner is not None and owner.digest != self._experiment.digest:
            found = f"{owner.digest[:12]}, this one is {self._experiment.digest[:12]}"
            hint = "choose another --out, or say --force to replace it"
            raise OutputRefusal(Problem("", f"{self._out} holds another experiment ({found})", hint))

    def _owner(self) -> Owner | None:
        try:
            return Owner.model_validate_json((self._out / layout.OWNER).read_bytes())
        except (OSError, ValidationError):
            return None

    def _make_directories(self) -> None:
        hidden = self._out / layout.HIDDEN
        for path in reversed((hidden, *hidden.parents)):
            if not path.exists():
                path.mkdir(exist_ok=True)
                self._made.append(path)

    def _forget(self) -> None:
        """Remove the directories made on entry, as far as they are empty."""
        for path in reversed(self._made):
            with contextlib.suppress(OSError):
                path.rmdir()

    def _begin(self) -> None:
        """Make the directory this experiment's: drop what no longer holds, say who owns it."""
        if self._begun:
            return
        previous = self._owner()
        if self._force and previous is not None:
            self._remove(previous.files)
            for record in (self._out / layout.HIDDEN / "points").glob("*.json"):
                record.unlink()
        self._remove(layout.WRITTEN_LAST)
        for point in self._experiment.points:
            if point.label not in self._complete:
                self._drop(point)  # What is left of other conditions is not to be taken for this run's.
        owner = Owner(digest=self._experiment.digest, files=layout.run_files(self._experiment))
        write_bytes(self._out / layout.OWNER, pretty(owner.model_dump(mode="json")))
        write_bytes(self._out / layout.DOCUMENT, self._document)
        self._begun = True

    def _remove(self, names: Sequence[str]) -> None:
        """Remove files a run wrote and the directories this leaves empty, never anything outside `out`."""
        for name in names:
            path = self._out / name
            if not path.parent.resolve().is_relative_to(self._out.resolve()):
                continue
            path.unlink(missing_ok=True)
            partial_name(path).unlink(missing_ok=True)
            for parent in path.parents:
                if parent == self._out:
                    break
                with contextlib.suppress(OSError):
                    parent.rmdir()

    def _write_save(self, name: str, save: Save, produced: Observed, digest: str) -> None:
        path = self._out / name
        for table in produced.tables:
            if table.name == save.value:
                return write_bytes(path, table_bytes(table, digest))
        for bundle in produced.bundles:
            if bundle.name == save.value:
                return write_bundle(path, bundle, {"digest": digest, **self._stamp})
        raise RunFailure(f"the run brought no '{save.value}' for the step {'/'.join(produced.path)}")

    @contextlib.contextmanager
    def _writing(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise RunFailure(f"{error.filename or self._out} could not be written: {error.strerror}", KEPT) from error


def _produced_by(observe: Observe, observed: tuple[Observed, ...]) -> Observed:
    for step in observed:
        if step.path == observe.path:
            return step
    raise RunFailure(f"the run brought nothing for the step {'/'.join(observe.path)}")


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
