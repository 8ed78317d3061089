"""A dataset reference, `dir/table` or `dir/table#split`, and where its table lies under the data root.

Knows spelling and paths; refuses to know what is in a table. A reference never leaves the root.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from causalab_mini.errors import DataRefusal, Problem, suggest

ENDINGS = (".json", ".jsonl", ".csv", ".parquet")
_SHAPE = "a reference is dir/table or dir/table#split, under the data root"


@dataclass(frozen=True)
class Ref:
    """A parsed reference: the table's parts, and the split if one is named."""

    parts: tuple[str, ...]
    split: str | None = None

    @property
    def table(self) -> str:
        """`dir/table`."""
        return "/".join(self.parts)


def parse(ref: str) -> Ref:
    """The parts of `ref`. Refused where it is not spelled as a reference or could leave the root."""
    table, hash_sign, split = ref.partition("#")
    if hash_sign and not split:
        raise _refusal(f"'{ref}' names no split after '#'", _SHAPE)
    if table.startswith("/") or table[1:2] == ":":
        raise _refusal(f"'{ref}' is an absolute path, which leaves the data root", _SHAPE)
    if "\\" in table or "\0" in table:
        raise _refusal(f"'{ref}' holds a character no reference may have", "parts are joined by '/'")
    parts = tuple(table.split("/"))
    if ".." in parts:
        raise _refusal(f"'{ref}' climbs out of the data root", _SHAPE)
    if len(parts) < 2 or any(not part.strip() or part == "." for part in parts):
        raise _refusal(f"'{ref}' is not dir/table", _SHAPE)
    return Ref(parts, split if hash_sign else None)


def locate(ref: Ref, root: Path) -> Path:
    """The table's file under `root`. Refused where there is none, with the nearest table, or more than one."""
    if not root.is_dir():
        raise _refusal(f"there is no data root '{root}'", "--data-root names another folder")
    folder = root.joinpath(*ref.parts[:-1])
    paths = [folder / (ref.parts[-1] + ending) for ending in ENDINGS]
    if not all(path.resolve().is_relative_to(root.resolve()) for path in paths):
        raise _refusal(f"'{ref.table}' is a link that leaves the data root", "put the table itself under the root")
    found = [path for path in paths if path.is_file()]
    if len(found) > 1:
        names = " and ".join(f"'{path.name}'" for path in found)
        raise _refusal(f"'{ref.table}' is more than one table: {names}", "keep one of the files, or rename the others")
    if found:
        return found[0]
    shown = next((ref.table.removesuffix(ending) for ending in ENDINGS if ref.table.endswith(ending)), None)
    if shown is not None and (folder / ref.parts[-1]).is_file():
        raise _refusal(f"there is no table '{ref.table}'", f"leave the ending out: '{shown}'")
    raise _refusal(f"there is no table '{ref.table}' under '{root}'", suggest(ref.table, tables(root), "tables"))


def tables(root: Path) -> tuple[str, ...]:
    """Every `dir/table` and `dir/dir/table` under `root`, sorted; deeper ones load but are not listed."""
    found = (path for depth in ("*/*", "*/*/*") for ending in ENDINGS for path in root.glob(depth + ending))
    return tuple(sorted({path.relative_to(root).with_suffix("").as_posix() for path in found}))


def _refusal(message: str, hint: str) -> DataRefusal:
    return DataRefusal(Problem("", message, hint))
