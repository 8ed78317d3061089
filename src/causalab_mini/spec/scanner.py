"""A JSON scanner that remembers lines and names what is wrong where.

Slower than the standard parser and used only where a problem needs a line. Reports every duplicate key and every
number or text JSON cannot carry, and stops at the first break of the grammar.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass, field

from causalab_mini.errors import Problem, join

DEPTH = 100
WIDEST = 2**63 - 1

_BLANK = re.compile(r"[ \t\n\r]*")
_TEXT = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORD = re.compile(r"-?[A-Za-z_][A-Za-z0-9_]*")
_ENDLESS = ("NaN", "Infinity", "-Infinity")


@dataclass
class Scan:
    """What a text holds: the line of every path, and what is wrong."""

    lines: dict[str, int] = field(default_factory=dict[str, int])
    problems: list[Problem] = field(default_factory=list[Problem])


class _Broken(Exception):
    """The grammar breaks here; the problem is already noted."""


def scan(text: str) -> Scan:
    """Scan one JSON text."""
    scanner = _Scanner(text)
    with suppress(_Broken):
        scanner.whole()
    return scanner.found


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found = Scan()
        self.breaks = [match.start() for match in re.finditer("\n", text)]

    def line(self) -> int:
        return bisect_right(self.breaks, self.at - 1) + 1

    def note(self, path: str, message: str, hint: str | None) -> None:
        self.found.problems.append(Problem(path, message, hint, self.line()))

    def stop(self, path: str, message: str, hint: str | None = None) -> _Broken:
        self.note(path, message, hint)
        return _Broken()

    def peek(self) -> str:
        end = _BLANK.match(self.text, self.at)
        self.at = end.end() if end else self.at
        return self.text[self.at : self.at + 1]

    def shown(self) -> str:
        if self.at >= len(self.text):
            return "the end of the file"
        word = _WORD.match(self.text, self.at)
        return f"'{word.group()[:20] if word else self.text[self.at]}'"

    def advice(self) -> str | None:
        rest = self.text[self.at : self.at + 5]
        if rest.startswith(("//", "/*", "#")):
            return "JSON has no comments; a description goes into the header"
        if rest.startswith("'"):
            return "JSON puts text between double quotes"
        if rest.startswith(("True", "False", "None")):
            return "JSON spells these true, false and null"
        if rest.startswith(("}", "]")):
            return "there may be a comma too many before it"
        return "a bracket may not be closed" if not rest else None

    def whole(self) -> None:
        self.value("", 0)
        if self.peek():
            raise self.stop("", f"the document ends here, and {self.shown()} follows", "keep one object in a file")

    def value(self, path: str, depth: int) -> None:
        start = self.peek()
        self.found.lines.setdefault(path, self.line())
        if start in ("{", "[") and start:
            if depth >= DEPTH:
                raise self.stop(
                    path[:200], f"objects and lists are nested more than {DEPTH} deep", "flatten the document"
                )
            (self.members if start == "{" else self.items)(path, depth + 1)
        elif start == '"':
            self.string(path)
        elif self.text.startswith(_ENDLESS, self.at):
            word = next(word for word in _ENDLESS if self.text.startswith(word, self.at))
            self.note(path, f"{word} is no JSON number", "give a finite number")
            self.at += len(word)
        elif self.text.startswith(("true", "null"), self.at):
            self.at += 4
        elif self.text.startswith("false", self.at):
            self.at += 5
        else:
            self.number(path)

    def number(self, path: str) -> None:
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            raise self.stop(path, f"a value is needed, and {self.shown()} was found", self.advice())
        digits = match.group()
        short = digits if len(digits) <= 24 else digits[:20] + "…"
        if match.group(1) is None and match.group(2) is None:
            if len(digits) > 20 or abs(int(digits)) > WIDEST:
                self.note(path, f"{short} does not fit into 64 bits", "give a smaller integer")
        elif math.isinf(float(digits)):
            self.note(path, f"{short} is larger than any 64-bit float", "give a smaller number")
        self.at = match.end()

    def string(self, path: str) -> str:
        match = _TEXT.match(self.text, self.at)
        if match is None:
            raise self.stop(
                path,
                "a text is not closed on its line, or holds a control character or an unknown escape",
                'close it with ", and write \\n for a line break and \\\\ for a backslash',
            )
        content: str = json.loads(match.group())
        try:
            content.encode("utf-8")
        except UnicodeEncodeError:
            self.note(path, "a text holds half a surrogate pair, which is no character", "write the character itself")
        self.at = match.end()
        return content

    def members(self, path: str, depth: int) -> None:
        self.at += 1
        seen: dict[str, int] = {}
        while True:
            start = self.peek()
            if start == "}" and not seen:
                break
            if start != '"':
                raise self.stop(path, f"a key in double quotes is needed, and {self.shown()} was found", self.advice())
            line = self.line()
            key = self.string(path)
            inner = join(path, key)
            if key in seen:
                self.found.problems.append(
                    Problem(inner, f"the key '{key}' stands here twice; first on line {seen[key]}", "keep one", line)
                )
            seen.setdefault(key, line)
            self.found.lines.setdefault(inner, line)
            if self.peek() != ":":
                raise self.stop(inner, f"a ':' is needed after the key, and {self.shown()} was found", self.advice())
            self.at += 1
            self.value(inner, depth)
            if self.next(path, "}"):
                break
        self.at += 1

    def items(self, path: str, depth: int) -> None:
        self.at += 1
        index = 0
        while not (self.peek() == "]" and index == 0):
            self.value(join(path, index), depth)
            index += 1
            if self.next(path, "]"):
                break
        self.at += 1

    def next(self, path: str, close: str) -> bool:
        """Whether the object or list ends here; else a comma is passed."""
        found = self.peek()
        if found == close:
            return True
        if found != ",":
            raise self.stop(path, f"a ',' or '{close}' is needed, and {self.shown()} was found", self.advice())
        self.at += 1
        return False
