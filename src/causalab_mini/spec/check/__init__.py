"""Whether the names and numbers of a document fit each other, without rows and without a checkpoint.

One module for each noun, each a generator of problems. `broken` are paths of parts that are there but not well
formed: their names count as declared, and nothing is said about what they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from causalab_mini.errors import Problem
from causalab_mini.spec.check import (
    decode,
    featurizers,
    generation,
    metrics,
    models,
    reads,
    saves,
    sites,
    steps,
    writes,
)
from causalab_mini.spec.check.names import Here, Scope, empty, reserved
from causalab_mini.spec.check.watched import Asked, Differences
from causalab_mini.spec.document import Document, Intervention

Question = Callable[[Here], Iterator[Problem]]


@dataclass
class Checker:
    """Checks the points of one document: of a part that a point shares with one before, nothing is asked again."""

    asked: Asked[Document, Problem] = field(init=False)
    questions: Asked[Document, tuple[str, Question]] = field(init=False)

    def __post_init__(self) -> None:
        differences = Differences()
        self.asked = Asked(differences)
        self.questions = Asked(differences)

    def check(self, document: Document, broken: frozenset[str] = frozenset()) -> Iterator[Problem]:
        """Everything that is wrong with a well-shaped document."""
        for name, question in self.questions.ask("all", document, _questions):
            for problem in self.asked.ask((name, broken), document, lambda seen, ask=question: ask(Here(seen, broken))):
                if not broken or not Here(document, broken).covered(problem.path):
                    yield problem


def check(document: Document, broken: frozenset[str] = frozenset()) -> Iterator[Problem]:
    """Everything that is wrong with one well-shaped document."""
    return Checker().check(document, broken)


def _questions(document: Document) -> Iterator[tuple[str, Question]]:
    """All there is to ask of a document, by name."""
    yield "names", _names
    yield "sites", lambda here: sites.check(here.document)
    yield "featurizers", featurizers.check
    yield "generation", generation.check_model
    for name in document.interventions:
        yield from _of_intervention(f"interventions.{name}", partial(_declared, name))
    for number, found in enumerate(steps.inline(document)):
        yield from _of_intervention(found.path, partial(_inline, number))
    yield "steps", steps.check
    yield "saves", saves.check


def _names(here: Here) -> Iterator[Problem]:
    for section in ("roles", "sites", "featurizers", "interventions", "steps"):
        yield from reserved(section, getattr(here.document, section))
    for section in ("roles", "steps"):
        yield from empty(here, section, getattr(here.document, section))


def _declared(name: str, here: Here) -> Intervention:
    return here.document.interventions[name]


def _inline(number: int, here: Here) -> Intervention:
    return list(steps.inline(here.document))[number].intervention


def _of_intervention(path: str, of: Callable[[Here], Intervention]) -> Iterator[tuple[str, Question]]:
    for part in (_own_names, decode.check, generation.check, reads.check, writes.check, models.check, metrics.check):
        yield (
            f"{path} {part.__module__} {part.__name__}",
            lambda here, part=part: part(Scope(here, of(here), path)),
        )


def _own_names(scope: Scope) -> Iterator[Problem]:
    for section in ("reads", "writes", "models", "metrics"):
        yield from reserved(f"{scope.path}.{section}", getattr(scope.intervention, section))
    yield from empty(scope.here, f"{scope.path}.reads", scope.intervention.reads)
