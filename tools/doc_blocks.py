"""The blocks of README.md and docs/ that say what the product does: found, run, and filled in.

`python tools/doc_blocks.py` writes what the commands really say into the pages; a test compares. Kinds of blocks:

    ```console                                   `$ command`, then what it says; `# exit 2` where it is refused
    ```sh                                        commands whose output is not shown
    ```python                                    `>>> code` and what it says; other code is only shown
    <!-- file: documents/v2/patching.json -->    ```json: that file, word for word
    <!-- in: DOC at PATH -->                     ```json: fits that document at that path
    <!-- refused: DOC at PATH is VALUE -->       ```text: what `explain` says of it
    <!-- from: out/x/run.json at PATH -->        ```json: part of a file that the page's commands wrote

A page's commands run in order in one directory of its own, its code in one session. A command that runs a document
does so on the hooks engine unless it says another.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import math
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causalab_mini.cli import execute

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
GENERATED = ROOT / "docs" / "cli.md"
NAME = "causalab-mini"
_BLOCK = re.compile(r"(?:<!-- (?P<note>(?:(?!-->).)*?) -->\n+)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+e[+-]?\d+")
_SECONDS = re.compile(r"\d+\.\d s\)")
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{12}\b")
_SHORT = re.compile(r"\[\n[^\[\]{}]{0,90}\n *\]")
_NAMES: dict[str, Any] = {}
"""What the code of a page has defined so far."""
_PART = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `note` is the comment before it, `start` and `end` where its text stands."""

    page: Path
    language: str
    note: str
    text: str
    start: int
    end: int

    @property
    def commands(self) -> list[str]:
        """The commands of a console or sh block."""
        lines = self.text.splitlines()
        if self.language == "console":
            return [line[2:] for line in lines if line.startswith("$ ")]
        return [line for line in lines if line and not line.startswith("#")] if self.language == "sh" else []


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    found = _BLOCK.finditer(page.read_text())
    return [Block(page, m["language"], m["note"] or "", m["text"], m.start("text"), m.end("text")) for m in found]


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """An empty directory with the shipped documents and data in it, as the working directory."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("documents", "datasets", "docs"):
            (Path(folder) / name).symlink_to(ROOT / name)
        os.chdir(folder)
        _NAMES.clear()
        # What pages say of weights does not depend on what is known of them here.
        cache, os.environ["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME"), str(Path(folder) / ".cache")
        try:
            yield Path(folder)
        finally:
            os.chdir(before)
            del os.environ["XDG_CACHE_HOME"]
            if cache is not None:
                os.environ["XDG_CACHE_HOME"] = cache


def expected_exit(command: str) -> int:
    """The exit code a page promises: `# exit 2` after the command, else 0."""
    found = re.search(r"\s+# exit (\d+)$", command)
    return int(found[1]) if found else 0


def expanded(command: str) -> str:
    """A make target as the command of ours that its recipe runs."""
    target = re.fullmatch(r"make (\w+)", command)
    if target is None:
        return command
    recipe = re.search(rf"^{target[1]}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    lines = recipe[1].splitlines() if recipe else []
    return next(line.strip().removeprefix("$(BIN)/") for line in lines if NAME in line)


def said(command: str) -> tuple[int, str]:
    """Run one command of ours as a page shows it: exit code, and stdout and stderr as they came."""
    command = expanded(re.sub(r"\s+# exit \d+$", "", command))
    command, _, pipe = command.partition(" | ")
    command, _, file = command.partition(" > ")
    words = shlex.split(command)
    if words[0] != NAME:
        raise ValueError(f"a page runs {NAME} only, not {command!r}")
    if "run" in words and "--engine" not in words and "--help" not in words:
        words += ["--engine", "hooks"]
    page = io.StringIO()
    with contextlib.redirect_stdout(page), contextlib.redirect_stderr(page):
        code = execute(words[1:])
    text = page.getvalue()
    if file:
        Path(file.strip()).write_text(text)
        text = ""
    if pipe:
        which, count = re.fullmatch(r"(head|tail) -n (\d+)", pipe.strip()).groups()  # type: ignore[union-attr]
        lines = text.splitlines(keepends=True)
        text = "".join(lines[: int(count)] if which == "head" else lines[-int(count) :])
    return code, text


def session(block: Block) -> str:
    """The text a console block should have; its commands are run."""
    shown: list[str] = []
    for command in block.commands:
        code, text = said(command)
        if code != expected_exit(command):
            raise AssertionError(f"{block.page.name}: `{command}` left with {code}:\n{text}")
        shown.append(f"$ {command}\n{text}")
    return "\n".join(shown)


def conversation(block: Block) -> str:
    """The text a python block should have; its code is run."""
    shown: list[str] = []
    for example in doctest.DocTestParser().get_examples(block.text):
        first, *more = example.source.splitlines()
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(example.source, block.page.name, "single"), _NAMES)
        shown.append("\n".join([f">>> {first}", *(f"... {line}" for line in more)]) + f"\n{said.getvalue()}")
    return "".join(shown)


def reached(value: Any, path: str) -> Any:
    """The part of a JSON value at a dotted path."""
    for index, key in _PART.findall(path):
        value = value[int(index) if index else key]
    return value


def changed(document: str, path: str, value: Any) -> dict[str, Any]:
    """A shipped document with `value` at `path`."""
    whole = json.loads((ROOT / document).read_text())
    *parents, last = [int(index) if index else key for index, key in _PART.findall(path)]
    here = whole
    for key in parents:
        here = here[key]
    here[last] = value
    return whole


def refusal(note: str) -> str:
    """What `explain` says of the document a `refused:` note describes."""
    document, path, value = re.fullmatch(r"refused: (\S+) at (\S+) is (.+)", note, re.S).groups()  # type: ignore[union-attr]
    text = changed(document, path, json.loads(value))
    with workplace() as folder:
        name = Path(document).name
        (folder / name).write_text(json.dumps(text, indent=2, ensure_ascii=False))
        code, answer = said(f"{NAME} explain {name} # exit 2")
    if code != 2:
        raise AssertionError(f"not refused: {note}\n{answer}")
    return answer


def excerpt(note: str) -> Any:
    """The part of a written file that a `from:` note names."""
    file, path = re.fullmatch(r"from: (\S+)(?: at (\S+))?", note).groups()  # type: ignore[union-attr]
    return reached(json.loads(Path(file).read_text()), path or "")


def printed(value: Any) -> str:
    """JSON for a page: short lists stand on one line."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    text = _SHORT.sub(lambda found: re.sub(r"\n *", " ", found[0]).replace("[ ", "[").replace(" ]", "]"), text)
    return text + "\n"


def actual(block: Block) -> str | None:
    """What a block should say, or None for one that says nothing that can be run. In a `workplace`, in order."""
    if block.language == "console":
        return session(block)
    if block.language == "python" and block.text.startswith(">>> "):
        return conversation(block)
    if block.note.startswith("refused: "):
        return refusal(block.note)
    if block.note.startswith("from: "):
        return printed(excerpt(block.note))
    if block.note.startswith("file: "):
        return (ROOT / block.note.removeprefix("file: ")).read_text()
    if block.language == "sh":
        for command in block.commands:
            if command.startswith(NAME) and "--weights" not in command:
                code, text = said(command)
                if code != expected_exit(command):
                    raise AssertionError(f"{block.page.name}: `{command}` left with {code}:\n{text}")
    return None


def agree(shown: str, found: str) -> bool:
    """Whether two texts say the same: seconds and digests aside, and fractions to one in a hundred."""
    shown, found = _DIGEST.sub("digest", shown), _DIGEST.sub("digest", found)
    one, other = (_SECONDS.sub("s)", re.sub(r" +", " ", re.sub(r"-{4,}", "-", text))) for text in (shown, found))
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
        return False
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=1e-2, abs_tol=1e-30) for a, b in pairs)


def fill(page: Path) -> bool:
    """Write what the commands of a page really say into it, where it says something else; whether it did."""
    text = page.read_text()
    with workplace():
        answers = [(block, actual(block)) for block in blocks(page)]
    known = [(block, answer) for block, answer in answers if answer is not None]
    wrong = [
        (block, answer)
        for block, answer in known
        if not agree(block.text, answer) or _DIGEST.findall(block.text) != _DIGEST.findall(answer)
    ]
    for block, answer in reversed(wrong):
        text = text[: block.start] + answer + text[block.end :]
    if wrong:
        page.write_text(text)
    return bool(wrong)


if __name__ == "__main__":
    asked = [Path(name).resolve() for name in sys.argv[1:]]
    for each in asked or PAGES:
        if each != GENERATED and fill(each):
            print(f"{each.relative_to(ROOT)}: filled in")
