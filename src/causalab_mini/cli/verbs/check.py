"""check: whether a document's numbers are what they should be, whoever computes them."""

from __future__ import annotations

from shutil import get_terminal_size
from typing import Annotated

import typer

from causalab_mini.cli.options import (
    DEFAULT_DATA_ROOT,
    AsJson,
    DataRoot,
    Debug,
    DeviceMap,
    DocumentPath,
    EngineName,
    Gen,
    Limit,
    Points,
    ScheduleName,
    Set,
    Weights,
    voice_of,
)
from causalab_mini.cli.reading import compile_document
from causalab_mini.errors import EXIT_FAILED

EXAMPLES = (
    "causalab-mini check documents/v2/patching.json",
    "causalab-mini check documents/v2/layer_position.json --points layer=1 --limit 4",
    "causalab-mini check documents/v2/generate_steer.json --json",
)
ROWS = 16
"""How many rows of every table are looked at where nothing is said."""


def check(
    context: typer.Context,
    document: DocumentPath,
    points: Points = None,
    limit: Limit = ROWS,
    schedule: Annotated[
        ScheduleName, typer.Option("--schedule", help="The schedule that is held against the naive one.")
    ] = ScheduleName.AUTO,
    engine: Annotated[EngineName, typer.Option("--engine", help="What runs all but the other engine's run.")] = (
        EngineName.TRACED
    ),
    device_map: Annotated[
        DeviceMap | None, typer.Option("--device-map", help="Where the weights sit; the best there is if not said.")
    ] = None,
    gen: Gen = None,
    sets: Set = None,
    data_root: DataRoot = DEFAULT_DATA_ROOT,
    weights: Weights = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Hold a document's numbers against those of every other way to compute them. Writes no file.

    Every row alone against the batch; the schedule against the naive one; one engine against the other; every write
    putting back what is there, which must change nothing. Also what every write did: on how many rows it acted, and
    how much it changed at its site and at each read of its model.

    Looks at the first 16 rows and at 8 points, unless --limit and --points say otherwise (--points '*' for all). The
    exit code is 1 where something is out of bounds: in fp32, a value that differs by more than 1e-4 of the largest
    entry in its row, or tokens that differ without a near tie.
    """
    voice = voice_of(context)
    compiled = compile_document(document, voice, data_root, weights, need_weights=True, gen=gen, sets=sets, limit=limit)
    voice.warn(compiled.experiment.warnings)

    from causalab_mini.cli.checking import POINTS, checked
    from causalab_mini.cli.selection import selected, spread
    from causalab_mini.cli.verdict import page, tree
    from causalab_mini.garbage import collected

    labels = selected(compiled.experiment, points) if points else spread(compiled.experiment, POINTS)
    device = None if device_map is None else device_map.value
    with collected():
        found = checked(compiled, labels, engine.value, device, schedule.value)
    room = get_terminal_size() if voice.out.isatty() else None
    voice.answer(page(found, document.name, room), tree(found))
    if not found.holds:
        raise typer.Exit(EXIT_FAILED)
