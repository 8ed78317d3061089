"""A dataset reference, `dir/table` or `dir/table#split`, and where its table lies under the data root.

Knows spelling and paths; refuses to know what is in a table. A reference never leaves the root.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from causalab_mini.errors import DataRefusal, Problem, suggest

TABLE = ".json"
PLANNED = (".jsonl", ".csv", ".parquet")
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
    """The table's file under `root`. Refused, with the nearest table, where there is none."""
    if not root.is_dir():
        raise _refusal(f"there is no data root '{root}'", "--data-root names another folder")
    path = root.joinpath(*ref.parts[:-1], ref.parts[-1] + TABLE)
    if not path.resolve().is_relative_to(root.resolve()):
        raise _refusal(f"'{ref.table}' is a link that leaves the data root", "put the table itself under the root")
    if path.is_file():
        return path
    for suffix in PLANNED:
        if path.with_name(ref.parts[-1] + suffix).is_file():
            raise _refusal(f"'{ref.table}{suffix}': {suffix} tables are not implemented yet", "use a .json array")
    shown = ref.table.removesuffix(TABLE)
    if shown != ref.table and path.with_name(ref.parts[-1]).is_file():
        raise _refusal(f"there is no table '{ref.table}'", f"leave the ending out: '{shown}'")
    raise _refusal(f"there is no table '{ref.table}' under '{root}'", suggest(ref.table, tables(root), "tables"))


def tables(root: Path) -> tuple[str, ...]:
    """Every `dir/table` and `dir/dir/table` under `root`, sorted; deeper ones load but are not listed."""
    found = (path for depth in ("*/*", "*/*/*") for path in root.glob(depth + TABLE))
    return tuple(sorted(path.relative_to(root).with_suffix("").as_posix() for path in found))


def _refusal(message: str, hint: str) -> DataRefusal:
    return DataRefusal(Problem("", message, hint))
