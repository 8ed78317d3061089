"""Bytes to points: syntax, sweeps, shapes and references, all problems at once, each with its path and line.

Knows the order of these looks and how problems of many points become one list; the looks themselves are elsewhere.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from causalab_mini.errors import Problem, ReferenceRefusal, Refusal, SchemaRefusal, SweepRefusal
from causalab_mini.garbage import uncollected
from causalab_mini.spec import text as texts
from causalab_mini.spec.check import Checker
from causalab_mini.spec.digest import Digester
from causalab_mini.spec.document import Document
from causalab_mini.spec.generation import COMMAND, COMMANDED_NOTHING, Layer, misfits, spelled
from causalab_mini.spec.parse import Parser
from causalab_mini.spec.sweep import Expansion, Point, survey
from causalab_mini.spec.text import Json, JsonObject, Lines

ALIKE = 3
"""How many problems of single points one path may have before the rest is only counted."""


@dataclass(frozen=True)
class PointSpec:
    """One setting of the sweep: label ("" without one), the axes' values, the document, its digest, its JSON."""

    label: str
    axes: tuple[tuple[str, Json], ...]
    document: Document
    digest: str
    lowered: JsonObject


@dataclass(frozen=True)
class Loaded:
    """A document as its points. `digest` stands for the whole: a lone point's own, or one over labels and digests."""

    name: str
    points: tuple[PointSpec, ...]
    swept: bool
    digest: str
    lines: Lines
    command: Layer = COMMANDED_NOTHING
    limit: int | None = None
    """How many rows of every table there are, where the command line says so."""

    def commanded(self, settings: Mapping[str, Json]) -> Loaded:
        """The same with generation settings from the command line, which make it another experiment.

        `ReferenceRefusal` where one is no setting, or its value does not fit.
        """
        if not settings:
            return self
        layer = Layer(COMMAND, "", dict(settings))
        if problems := tuple(misfits(layer)):
            raise ReferenceRefusal(problems)
        told = "".join(f" {key}={text}" for key, text in sorted(spelled(layer).items()))
        return replace(self._told(told), command=layer)

    def limited(self, rows: int | None) -> Loaded:
        """The same on the first `rows` rows of every table, which is another experiment; itself for None."""
        return self if rows is None else replace(self._told(f" limit={rows}"), limit=rows)

    def _told(self, more: str) -> Loaded:
        """The same with `more` in every digest."""
        points = tuple(replace(point, digest=_sha256(f"{point.digest}{more}")) for point in self.points)
        return replace(self, points=points, digest=_whole(points, self.swept))

    def placed(self, refusal: Refusal) -> Refusal:
        """A later refusal of this document, its problems with their lines."""
        return type(refusal)(placed(refusal.problems, self.lines))


def load(text: bytes, name: str) -> Loaded:
    """Read a document from the bytes of the file `name`.

    Raises `SyntaxRefusal`, or else with everything that can be found together `SweepRefusal`, `SchemaRefusal` or
    `ReferenceRefusal`, named for the first kind that is there.
    """
    return load_parsed(*texts.parse(text), name)


def load_parsed(raw: JsonObject, lines: Lines, name: str) -> Loaded:
    """The same of a document that is an object already; `lines` says where its parts stand."""
    expansion = survey(raw)
    look = _Look(expansion)
    points = iter([Point("", (), (), expansion.first())]) if expansion.problems else expansion.points()
    with uncollected():
        specs = [spec for point in points if (spec := look.point(point)) is not None]
    problems = look.problems()
    if expansion.problems:
        # What stands in for a broken sweep is not the author's: only problems elsewhere are told.
        apart = [problem for problem in problems if not any(_touch(problem, sweep) for sweep in expansion.problems)]
        raise SweepRefusal(placed((*expansion.problems, *apart), lines))
    if look.shapes:
        raise SchemaRefusal(placed(problems, lines))
    if problems:
        raise ReferenceRefusal(placed(problems, lines))
    return Loaded(name, tuple(specs), expansion.swept, _whole(specs, expansion.swept), lines)


def _touch(problem: Problem, sweep: Problem) -> bool:
    wrapper = re.split(r"\.(?:sweep|as)\b", sweep.path)[0]
    inner, outer = sorted((problem.path, wrapper), key=len, reverse=True)
    return inner == outer or inner.startswith((f"{outer}.", f"{outer}["))


def _whole(points: Sequence[PointSpec], swept: bool) -> str:
    if not swept:
        return points[0].digest
    return _sha256("\n".join(f"{point.label} {point.digest}" for point in points))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def placed(problems: Iterable[Problem], lines: Lines) -> list[Problem]:
    """Problems with their lines, in the order of the text."""
    found = [replace(problem, line=problem.line or lines.of(problem.path)) for problem in problems]
    return sorted(found, key=lambda problem: (problem.line or 0, problem.path, problem.message))


class _Look:
    """Looks at every point and remembers which problem was seen at which."""

    def __init__(self, expansion: Expansion) -> None:
        self._expansion = expansion
        self._parser = Parser()
        self._digester = Digester()
        self._checker = Checker()
        self._seen: dict[Problem, list[Point]] = {}
        self._count = 0
        self.shapes = False

    def point(self, point: Point) -> PointSpec | None:
        """The point's spec, or None where something is wrong with it."""
        self._count += 1
        parsed = self._parser.document(point.value)
        self.shapes = self.shapes or bool(parsed.problems)
        problems = list(parsed.problems)
        if parsed.node is not None:
            problems += self._checker.check(parsed.node, parsed.broken)
        if parsed.misspelt:
            problems = [parsed.written(problem) for problem in problems]
        for problem in problems:
            self._seen.setdefault(problem, []).append(point)
        if problems or self._expansion.problems or parsed.node is None:
            return None
        digest = self._digester.digest(parsed.node)
        return PointSpec(point.label, point.axes, parsed.node, digest, point.value)

    def problems(self) -> list[Problem]:
        """Every problem once; one that is not everywhere says at which points it is."""
        found: list[Problem] = []
        told: dict[str, int] = {}
        for problem, points in self._seen.items():
            everywhere = len(points) == self._count
            told[problem.path] = told.get(problem.path, 0) + (not everywhere)
            if everywhere or told[problem.path] <= ALIKE:
                found.append(self._told(problem, points))
        for path, count in told.items():
            if count > ALIKE:
                found.append(Problem(path, f"and {count - ALIKE} more like these, at other points"))
        return found

    def _told(self, problem: Problem, points: Sequence[Point]) -> Problem:
        if len(points) == self._count:
            return problem
        first = points[0].label
        some = (
            f"at the point {first}" if len(points) == 1 else f"at {len(points)} of {self._count} points, first {first}"
        )
        return replace(problem, message=f"{problem.message} ({some})")
