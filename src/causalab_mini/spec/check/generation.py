"""Generation settings as a document states them: known names, values that fit, nothing that decode decides."""

from __future__ import annotations

from collections.abc import Iterator

from causalab_mini.errors import Problem
from causalab_mini.spec.check.names import Here, Scope
from causalab_mini.spec.document import Document
from causalab_mini.spec.generation import Layer, Lock, contradictions, merged, misfits

MODEL = "model.generation"


def stated(document: Document) -> Layer:
    """The document's own layer; empty where it leaves the settings neutral or to the checkpoint."""
    own = document.model.generation
    return Layer(MODEL, MODEL, own if isinstance(own, dict) else {})


def check_model(here: Here) -> Iterator[Problem]:
    """The settings of the whole document."""
    yield from misfits(stated(here.document))


def check(scope: Scope) -> Iterator[Problem]:
    """The settings of an intervention, and those of the document where it generates."""
    intervention, path = scope.intervention, f"{scope.path}.generation"
    own = Layer(path, path, intervention.generation)
    wrong = list(misfits(own))
    yield from wrong
    if intervention.decode.never:
        if intervention.generation and f"{scope.path}.decode" not in scope.here.broken:
            yield Problem(path, "nothing is generated here, so settings have nothing to say", 'add "decode"')
        return
    told = {problem.path for problem in (*wrong, *misfits(stated(scope.here.document)))}
    settings = [setting for setting in merged((stated(scope.here.document), own)) if setting.path not in told]
    lock = Lock(f"{scope.path}.decode", intervention.decode, intervention.decode.steps)
    yield from contradictions(settings, lock)
