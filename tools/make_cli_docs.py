"""Writes docs/cli.md from the command itself: `python tools/make_cli_docs.py`. A test holds that it is current."""

from __future__ import annotations

import io
import os
from contextlib import redirect_stdout
from pathlib import Path

from causalab_mini.cli import execute
from causalab_mini.cli.app import DEBUG, DEBUG_VERBS, NAME, VERBS

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
WIDTH = 100
OPENING = """# The command line

This page is what the command says about itself. `tools/make_cli_docs.py` writes it.

Answers go to stdout; progress, tables for people, warnings and errors to stderr. With `--json`, before or after the
verb, stdout is one JSON value and nothing else. For errors that is
`{"ok": false, "problems": [{"path", "line", "message", "hint"}, …]}`. A refusal is never a traceback; `--debug`
shows it.

| exit code | |
|---|---|
| 0 | done |
| 1 | a run failed: no such model, a device that is not there, an error inside a forward |
| 2 | the document, the data, the output directory or the command line was refused; nothing ran, nothing was written |
| 130 | interrupted |
"""


def page() -> str:
    """The whole page."""
    sections = [OPENING, f"## {NAME}\n\n{_help()}"]
    verbs = [(verb.__name__,) for verb, _ in VERBS] + [(DEBUG, verb.__name__) for verb, _ in DEBUG_VERBS]
    sections += [f"## {NAME} {' '.join(words)}\n\n{_help(*words)}" for words in verbs]
    return "\n".join(sections)


def _help(*verb: str) -> str:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(WIDTH)
    said = io.StringIO()
    try:
        with redirect_stdout(said):
            execute([*verb, "--help"])
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    lines = (line.rstrip() for line in said.getvalue().strip().splitlines())
    return "```text\n" + "\n".join(lines) + "\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page())
