"""Whether the names and numbers of a document fit each other."""

from __future__ import annotations

from collections.abc import Iterator

from causalab_mini.errors import Problem
from causalab_mini.spec.document import Document


def check(document: Document, broken: frozenset[str] = frozenset()) -> Iterator[Problem]:
    """Everything that is wrong with a well-shaped document, without rows and without a checkpoint."""
    yield from ()
