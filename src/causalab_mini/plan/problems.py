"""Gathers problems while a plan is being made, so that all of them come at once."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from causalab_mini.errors import Problem, Refusal, join


@dataclass
class Problems:
    """Problems so far, each once, and the path to put before those to come."""

    found: dict[Problem, None] = field(default_factory=dict[Problem, None])
    prefix: str = ""

    def add(self, message: str, hint: str | None = None, *, at: str = "") -> None:
        """One more problem, at the current path or below it."""
        self.found[Problem(join(self.prefix, at), message, hint)] = None

    @contextmanager
    def within(self, *parts: str | int) -> Generator[None]:
        """Prefix the path of what is found in the block; a refusal raised in it is found, and ends it."""
        with self._prefixed(join(self.prefix, *parts)):
            yield

    @contextmanager
    def under(self, *parts: str | int) -> Generator[None]:
        """The same with a path from the document's root."""
        with self._prefixed(join(*parts)):
            yield

    @contextmanager
    def _prefixed(self, prefix: str) -> Generator[None]:
        outer, self.prefix = self.prefix, prefix
        try:
            yield
        except Refusal as refusal:
            self.found.update(dict.fromkeys(problem.within(prefix) for problem in refusal.problems))
        finally:
            self.prefix = outer
