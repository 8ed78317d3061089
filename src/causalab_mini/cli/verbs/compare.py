"""compare: two finished runs, row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from causalab_mini.cli.options import AsJson, Debug, voice_of

if TYPE_CHECKING:
    from causalab_mini.results.comparing import Compared, Difference, Pair

EXAMPLES = (
    "causalab-mini run documents/v2/patching.json --out out/fp32",
    "causalab-mini run documents/v2/patching.json --out out/bf16 --set model.dtype=bf16",
    "causalab-mini compare out/fp32 out/bf16",
    "causalab-mini compare out/fp32 out/bf16 --json",
)
LINES = 30
"""How many metrics are shown."""
PLACES = 12
"""How many differences of documents are shown."""
WIDE = 60
"""How many characters of a value are shown."""

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The --out of a run.", show_default=False)]


def compare(
    context: typer.Context, first: Directory, second: Directory, as_json: AsJson = False, debug: Debug = False
) -> None:
    """Compare two finished runs, joined by example id and point.

    For every saved metric, the paired difference (the second less the first) over the rows that have a value in both,
    with its 95 % interval from a seeded bootstrap over rows, and how many rows changed; for every saved continuation,
    how many rows say other tokens; and what differs between the two documents, and between what the runs come from.
    """
    from causalab_mini.results.comparing import compare as held
    from causalab_mini.results.reader import Results

    found = held(Results(first), Results(second))
    voice_of(context).answer("\n".join(_page(found)), {"ok": True, "same": found.same, **asdict(found)})


def _page(found: Compared) -> Iterator[str]:
    from causalab_mini.cli.progress import columns

    yield from _places("the documents", found.document)
    yield from _places("the runs", found.run)
    for which, labels in (("first", found.only_first), ("second", found.only_second)):
        if labels:
            yield f"only in the {which}: {len(labels)} points, as {labels[0]}"
    shown = sorted(found.pairs, key=lambda pair: pair.changed == 0)[:LINES]
    if shown:
        layers = any(pair.layer is not None for pair in shown)
        steps = len({pair.observe for pair in found.pairs}) > 1
        header = [*_place(None, steps, layers), "first", "second", "difference", "95 % interval", "changed / rows"]
        yield ""
        yield columns(header, [[*_place(pair, steps, layers), *_cells(pair)] for pair in shown], numbers=5)
    if len(found.pairs) > len(shown):
        yield f"… and {len(found.pairs) - len(shown)} more; --json has them all"
    lost = [pair for pair in found.pairs if pair.only_first or pair.only_second]
    for pair in lost[:PLACES]:
        yield f"'{pair.metric}'{_at(pair.point)}: {pair.only_first} rows have a value only in the first, " + (
            f"{pair.only_second} only in the second"
        )
    if len(lost) > PLACES:
        yield f"… and {len(lost) - PLACES} metrics more with such rows"
    if found.said:
        yield ""
    for said in found.said[:LINES]:
        since = "" if said.first_step is None else f", from step {said.first_step} on"
        alone = ((said.only_first, "first"), (said.only_second, "second"))
        rest = "".join(f"; {count} rows only in the {which}" for count, which in alone if count)
        yield f"{said.value}{_at(said.point)}: {said.changed} of {said.n} rows say other tokens{since}{rest}"
    yield ""
    yield "no number and no token differs" if found.same else "the results differ"


def _places(what: str, found: Sequence[Difference]) -> Iterator[str]:
    if not found:
        yield f"{what} do not differ"
        return
    yield f"{what} differ:"
    for one in found[:PLACES]:
        yield f"  {one.path}: {_short(one.first)} -> {_short(one.second)}"
    if len(found) > PLACES:
        yield f"  … and {len(found) - PLACES} places more"


def _short(value: object) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= WIDE else text[: WIDE - 1] + "…"


def _at(point: str) -> str:
    return f" at {point}" if point else ""


def _place(pair: Pair | None, steps: bool, layers: bool) -> list[str]:
    if pair is None:
        return ["point", *(["step"] if steps else []), "metric", *(["layer"] if layers else [])]
    layer = "" if pair.layer is None else str(pair.layer)
    return [pair.point or "-", *([pair.observe] if steps else []), pair.metric, *([layer] if layers else [])]


def _cells(pair: Pair) -> list[str]:
    sure = "-" if pair.low is None or pair.high is None else f"{pair.low:.4g} to {pair.high:.4g}"
    numbers = ("-" if value is None else f"{value:.4g}" for value in (pair.first, pair.second, pair.difference))
    return [*numbers, sure, f"{pair.changed} / {pair.n}"]
