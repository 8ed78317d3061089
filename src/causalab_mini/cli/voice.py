"""How the command speaks: answers on stdout, everything else on stderr; with --json one JSON value on stdout.

error: a write in the continuation frame is at a step the decode has reached — …
  at  interventions.steer.writes.push.pos   (generate_steer.json:41)
  hint: …
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from causalab_mini.errors import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_REFUSED,
    Problem,
    Refusal,
    RunFailure,
)

SHOWN = 5
"""How many things that are wrong with a run are told of."""


@dataclass
class Voice:
    """What is said in one run of the command. `document` is the file that problems point into, once it is known.

    `out` is where answers go, whatever becomes of stdout meanwhile: nothing a library prints gets between.
    """

    as_json: bool = False
    debug: bool = False
    document: Path | None = None
    out: TextIO = field(default_factory=lambda: sys.stdout)
    answered: bool = False
    heard: bool = True
    """Whether answers arrive; nothing more is said on a stream that takes nothing."""

    def answer(self, text: str, value: object) -> None:
        """The verb's answer: `text` for people, `value` (strict JSON) with --json.

        `RunFailure` where it cannot be given.
        """
        self.answered = True
        strict = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
        if trouble := self._write(self.out, strict if self.as_json else text):
            self.heard = False
            raise RunFailure(
                f"the answer could not be written to standard output: {trouble}",
                "look where it goes; the files of a run are whole",
            )

    def tell(self, text: str) -> None:
        """Something beside the answer: progress, tables for people, warnings."""
        self._write(sys.stderr, text)

    def warn(self, warnings: Sequence[str]) -> None:
        """Things worth knowing that stop nothing."""
        for warning in warnings:
            self.tell(f"warning: {warning}")

    def failed(self, error: BaseException) -> int:
        """Say what stopped the verb; the exit code it leaves with."""
        if self.debug:
            self.tell("".join(traceback.format_exception(error)).rstrip())
        if isinstance(error, KeyboardInterrupt):
            return self._stopped((Problem("", "interrupted"),), EXIT_INTERRUPTED)
        if isinstance(error, Refusal):
            return self._stopped(error.problems, error.exit_code)
        if isinstance(error, RunFailure):
            return self._stopped((Problem(error.path, str(error), error.hint),), error.exit_code)
        found = f"{type(error).__name__}: {error}"
        hint = "this is a fault of the program; --debug shows where"
        return self._stopped((Problem("", found, None if self.debug else hint),), EXIT_FAILED)

    def blamed(self, found: Sequence[str], hint: str) -> int:
        """Say what is wrong with a run that is whole all the same; the exit code."""
        more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        self.tell("\n".join(self.block(Problem("", message)) for message in (*found[:SHOWN], *more)))
        self.tell(f"  hint: {hint}")
        return EXIT_FAILED

    def misused(self, message: str, usage: str | None) -> int:
        """Say that the command line is wrong; the exit code."""
        return self._stopped((Problem("", message, usage),), EXIT_REFUSED)

    def _stopped(self, problems: Sequence[Problem], code: int) -> int:
        if self.as_json and self.heard:
            found = [{"path": p.path, "line": p.line, "message": p.message, "hint": p.hint} for p in problems]
            self.answer("", {"ok": False, "problems": found})
        else:
            self.tell("\n".join(self.block(problem) for problem in problems))
        return code

    def block(self, problem: Problem) -> str:
        """One problem as people read it."""
        lines = [f"error: {problem.message}"]
        name = None if self.document is None else self.document.name
        place = name if name is None or problem.line is None else f"{name}:{problem.line}"
        if problem.path:
            lines.append(f"  at  {problem.path}" + (f"   ({place})" if place else ""))
        elif problem.line is not None and place:
            lines.append(f"  at  {place}")
        if problem.hint:
            lines.append(f"  hint: {problem.hint}")
        return "\n".join(lines)

    def _write(self, stream: TextIO, text: str) -> str | None:
        """Say something; what is wrong with the stream if it took nothing."""
        try:
            # Half a surrogate pair is no character that a stream can take.
            text = text.encode("utf-8", "backslashreplace").decode("utf-8")
            stream.write(text if text.endswith("\n") or not text else text + "\n")
            stream.flush()
        except OSError as error:
            # What is left to say goes nowhere, also what the interpreter flushes at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            # A reader that has gone has read what it wanted.
            return None if isinstance(error, BrokenPipeError) else error.strerror
        return None
