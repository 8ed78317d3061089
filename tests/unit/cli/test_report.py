"""report and plot: files where they were asked for, what they say, what they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.building import write_table
from tests.hostile import document, table

import causalab_mini as cm

Say = Callable[..., object]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project: a finished run in out/, its data in data/."""
    folder = tmp_path_factory.mktemp("ran")
    write_table(folder / "data", table())
    cm.run(document(), folder / "out", data_root=folder / "data", engine="hooks")
    return folder


def test_a_report_is_in_the_directory_of_its_run(ran: Path, say: Say) -> None:
    said = say("report", ran / "out", "--data-root", ran / "data")
    assert (said.code, said.out, said.err) == (0, f"{ran / 'out' / 'report.html'}\n", "")
    assert "<root>: Plan" not in said.out
    assert "Plan" in (ran / "out" / "report.html").read_text()
    again = cm.run(document(), ran / "out", data_root=ran / "data", engine="hooks")
    assert again.points == cm.load(ran / "out").points


def test_a_report_goes_where_it_is_told(ran: Path, say: Say, tmp_path: Path) -> None:
    said = say("report", ran / "out", "--data-root", ran / "data", "--out", tmp_path / "new" / "x.html", "--json")
    assert said.json == {"ok": True, "file": str(tmp_path / "new" / "x.html"), "plan": True, "missing": None}


def test_settings_of_the_command_line_are_part_of_what_was_run(ran: Path, say: Say, tmp_path: Path) -> None:
    cm.run(document(), tmp_path / "out", data_root=ran / "data", engine="hooks", gen={"repetition_penalty": 1.5})
    said = say("report", tmp_path / "out", "--data-root", ran / "data", "--json")
    assert said.json["missing"] is None
    assert "repetition_penalty=1.5 (--gen)" in (tmp_path / "out" / "report.html").read_text()


def test_a_quick_try_has_its_own_plan_and_says_what_it_leaves_out(ran: Path, say: Say, tmp_path: Path) -> None:
    arguments = {"data_root": ran / "data", "engine": "hooks", "limit": 2, "points": "layer=0"}
    cm.run(document(), tmp_path / "out", sets={"interventions.one.decode": 3}, **arguments)
    said = say("report", tmp_path / "out", "--data-root", ran / "data", "--json")
    assert said.json["missing"] is None
    text = (tmp_path / "out" / "report.html").read_text()
    assert "<dt>partial</dt><dd>2 of 4 points, the first 2 rows of every table</dd>" in text
    assert "decode=3" in text
    assert "layer=2" not in text


def test_a_report_without_the_data_says_so(ran: Path, say: Say, tmp_path: Path) -> None:
    said = say("report", ran / "out", "--data-root", tmp_path, "--out", tmp_path / "x.html", "--json")
    assert said.code == 0
    assert said.json["missing"] == f"there is no table 'own/rows' under '{tmp_path}'"
    assert "warning: no plan and no tokens: there is no table" in said.err
    assert "There is no plan here: there is no table" in (tmp_path / "x.html").read_text()


def test_a_report_of_other_data_shows_no_tokens(ran: Path, say: Say, tmp_path: Path) -> None:
    changed = table()
    changed[1]["input"] = "Sunday is"
    write_table(tmp_path / "data", changed)
    said = say("report", ran / "out", "--data-root", tmp_path / "data", "--out", tmp_path / "x.html", "--json")
    assert said.json["missing"] == "the data is not what it was when this was run"
    assert "Sunday" not in (tmp_path / "x.html").read_text()


def test_a_report_of_another_document_shows_no_plan(ran: Path, say: Say, tmp_path: Path) -> None:
    other = document()
    other["sites"]["mid"]["layers"]["sweep"] = [0, 1]
    (tmp_path / "other.json").write_text(json.dumps(other))
    arguments = ("--data-root", ran / "data", "--document", tmp_path / "other.json", "--out", tmp_path / "x.html")
    said = say("report", ran / "out", *arguments, "--json")
    assert said.json["missing"].startswith("the document alone is not what was run")


def test_a_plot_is_one_picture_or_several(ran: Path, say: Say, tmp_path: Path) -> None:
    data = ("--data-root", ran / "data")
    said = say("plot", ran / "out", *data, "--out", tmp_path / "x.svg")
    assert said.code == 0
    first, second = said.out.splitlines()
    assert first == f"{tmp_path / 'x-1.svg'}: p over layer and position (probability)"
    assert second == f"{tmp_path / 'x-2.svg'}: spread over layer and position (nat)"
    said = say("plot", ran / "out", *data, "--metric", "p", "--at", "layer=0", "--out", tmp_path / "y.pdf", "--json")
    (picture,) = said.json["pictures"]
    assert picture["file"] == str(tmp_path / "y.pdf")
    assert picture["description"].startswith("A line plot: mean p over position, in probability.")
    assert (tmp_path / "y.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plot", "OUT"), "plot needs a file for its picture"),
        (("plot", "OUT", "--out", "x.gif"), "no picture can be drawn as .gif"),
        (("plot", "OUT", "--out", "x"), "x names no kind of picture"),
        (("plot", "OUT", "--out", "x.png", "--metric", "q"), "there is no metric 'q'"),
        (("plot", "OUT", "--out", "x.png", "--at", "layer"), "--at takes AXIS=VALUE, and 'layer' was found"),
        (("plot", "OUT", "--out", "x.png", "--at", "depth=1"), "there is no axis 'depth'"),
        (("plot", "OUT", "--out", "x.png", "--at", "layer=7"), "'layer' is never 7"),
        (("plot", "nowhere", "--out", "x.png"), "there is no directory nowhere"),
        (("report", "nowhere"), "there is no directory nowhere"),
        (("report", "DATA"), "no run has finished in"),
        (("report", "OUT", "--out", "FILE/x.html"), "cannot be written"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    ran: Path, say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    names = {"OUT": str(ran / "out"), "DATA": str(ran / "data"), "FILE/x.html": str(tmp_path / "file" / "x.html")}
    said = say(*(names.get(argument, argument) for argument in arguments))
    assert said.code == 2
    assert message in said.err
    assert "hint: " in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
