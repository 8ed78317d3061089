"""Every benchmark runs, its three programs agree, and its page has a place for what it says. No time is asserted."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks import memory, startup
from benchmarks.__main__ import HEAD, PAGE, PROCESS_HEAD, RACES, process_row, put, race_row
from benchmarks.agreement import LARGEST_DIFFERENCE
from benchmarks.common import World
from benchmarks.documents import BUNDLED, FOLDER, ROWS
from benchmarks.processes import Ground, Line
from benchmarks.race import Job, check, race

from causalab_mini.schedule.optimize import Mode
from causalab_mini.spec.load import load

NAMES = sorted({name for name, *_ in RACES})


def job(name: str) -> Job:
    return import_module(f"benchmarks.{name}").JOB


@pytest.mark.parametrize("name", NAMES)
def test_the_programs_of_a_job_agree(name: str) -> None:
    checked = check(job(name), World(name, BUNDLED))
    assert checked.difference <= LARGEST_DIFFERENCE
    assert checked.token_layers["product"] < checked.token_layers["plain"] == checked.token_layers["nnsight"]


@pytest.mark.parametrize(("engine", "mode"), [("hooks", "auto"), ("traced", "exact")])
def test_the_other_ways_to_run_agree(engine: str, mode: Mode) -> None:
    result = race(job("generate_probe"), World("generate_probe", BUNDLED, engine=engine, mode=mode), repeats=1)
    assert race_row(asdict(result), judged=True).count("|") == HEAD[0].count("|")
    assert f"generate_probe on weekdays-llama ({engine}, {mode})" in str(result)


def test_numbers_that_lie_apart_are_told() -> None:
    true = job("plain_forward")
    wrong = replace(true, plain=lambda world: {name: value + 1 for name, value in true.plain(world).items()})
    with pytest.raises(SystemExit, match="apart"):
        check(wrong, World("plain_forward", BUNDLED))


def test_whole_processes_are_measured(tmp_path: Path) -> None:
    ground = Ground(BUNDLED, ROWS, 1, tmp_path)
    assert startup.sweep(ground).value > 0
    assert (tmp_path / "out" / "run.json").is_file()
    assert len((tmp_path / "script.csv").read_text().splitlines()) == 2 * 6


def test_wanted_ratios_are_for_a_model_of_some_size() -> None:
    ratio = asdict(Line("run / script", 0.5, 0.35, "CPU seconds 1 / 2"))
    light = asdict(Line("validate, CPU seconds", 0.3, 0.4, "the slowest of 6"))
    assert process_row(ratio, judged=False) == "| run / script | 0.500 | – | CPU seconds 1 / 2 |"
    assert process_row(ratio, judged=True) == "| run / script | 0.500 | 0.35 | CPU seconds 1 / 2 |"
    assert process_row(light, judged=False).count("0.40") == 1


def test_the_long_grid_is_of_two_hundred_points() -> None:
    for depth in (6, 30):
        assert len(load(json.dumps(memory.long_grid(depth)).encode(), "grid").points) >= memory.POINTS


def test_every_document_has_a_job() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == {*NAMES, "layer_position_all"}


def test_the_page_has_a_table_for_each_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "performance.md"
    page.write_text(PAGE.read_text())
    monkeypatch.setattr("benchmarks.__main__.PAGE", page)
    for name in ("weekdays-llama", "SmolLM2-135M"):
        put(name, [*HEAD, "| a row |", "", *PROCESS_HEAD])
    assert page.read_text().count("| a row |") == 2
