"""run: what it leaves, what it says, what it keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from causalab_mini.cli.progress import summary_table
from causalab_mini.results.summary import SummaryLine


def line(point: str, mean: float | None, observe: str = "score") -> SummaryLine:
    sure = {} if mean is None else {"sd": 0.25, "low": 0.125, "high": 0.75}
    fields = {"sd": None, "n_scored": 3, "n_rows": 4, **sure}
    return SummaryLine(point=point, axes={}, observe=observe, metric="p", mean=mean, **fields)


def test_a_run_leaves_its_files_and_says_so(say: Callable, project: Path, model: Path) -> None:
    told = say("run", "swap.json", "--out", "out", "--weights", model)
    assert told.code == 0
    names = ["document.json", "spread.json", "said.safetensors"]
    assert told.out.splitlines() == [
        *(f"out/layer={layer}/{name}" for layer in (0, 1) for name in names),
        *("out/document.json", "out/summary.csv", "out/summary.json", "out/run.json"),
    ]
    assert all((project / path).is_file() for path in told.out.splitlines())
    assert told.err.count("done") == 2
    assert told.err.splitlines()[-2].split() == ["layer=1", "best", "-", "-", "-", "2", "/", "2"]
    assert (project / "out/document.json").read_bytes() == (project / "swap.json").read_bytes()

    record = json.loads((project / "out/run.json").read_bytes())
    assert record["points"] == {"run": 2, "kept": 0}
    assert (record["engine"], record["device"], record["dtype"]) == ("traced", "cpu", "fp32")
    assert (record["model"]["key"], record["model"]["source"]) == ("some/model", "weights")
    assert "model.safetensors" in record["model"]["files"]
    assert str(project) not in json.dumps(record)
    assert str(model) not in json.dumps(record)

    again = say("run", "swap.json", "--out", "out", "--weights", model, "--json")
    assert again.json["points"] == {"run": 0, "kept": 2}
    assert len(again.json["summary"]) == 4
    other = say("run", "swap.json", "--out", "out", "--weights", model, "--engine", "hooks", "--json")
    assert other.json["points"] == {"run": 2, "kept": 0}


def test_a_folder_is_named_by_its_digest(say: Callable, project: Path, model: Path) -> None:
    document = json.loads((project / "swap.json").read_text())
    document["model"]["key"] = str(model)
    (project / "swap.json").write_text(json.dumps(document))
    assert say("run", "swap.json", "--out", "out").code == 0
    record = json.loads((project / "out/run.json").read_bytes())
    assert record["model"]["key"] == f"folder:{record['model']['resolved']}"
    assert str(model) not in json.dumps(record)


def test_a_refusal_writes_nothing(say: Callable, project: Path, model: Path) -> None:
    document = json.loads((project / "swap.json").read_text())
    document["sites"]["mid"]["layers"] = 7
    (project / "swap.json").write_text(json.dumps(document))
    assert say("run", "swap.json", "--out", "out", "--weights", model).code == 2
    assert not (project / "out").exists()


def test_a_failure_before_the_first_point_writes_nothing(say: Callable, project: Path, model: Path) -> None:
    told = say("run", "swap.json", "--out", "out", "--weights", model, "--device-map", "mps")
    assert told.code == 1
    assert told.err.startswith("error: device 'mps' was asked for")
    assert not (project / "out").exists()


@pytest.mark.usefixtures("project")
def test_another_experiments_directory_is_refused_at_once(say: Callable, project: Path, model: Path) -> None:
    assert say("run", "swap.json", "--out", "out", "--weights", model).code == 0
    document = json.loads((project / "swap.json").read_text())
    document["interventions"]["swap"]["decode"] = 3
    (project / "swap.json").write_text(json.dumps(document))
    told = say("run", "swap.json", "--out", "out", "--weights", model)
    assert told.code == 2
    assert "holds another experiment" in told.err
    assert "--force" in told.err
    assert say("run", "swap.json", "--out", "out", "--weights", model, "--force").code == 0


def test_the_table_shows_points_and_metrics() -> None:
    assert summary_table([line("index=0", 0.5), line("index=10", None)], Path("out")) == (
        "point     metric  mean    sd  95 % interval  n scored / n rows\n"
        "--------  ------  ----  ----  -------------  -----------------\n"
        "index=0   p        0.5  0.25  0.125 to 0.75              3 / 4\n"
        "index=10  p          -     -              -              3 / 4"
    )


def test_the_layers_of_a_stacked_site_have_a_column() -> None:
    lines = [line("", 0.5).model_copy(update={"layer": layer}) for layer in (11, None)]
    assert summary_table(lines, Path("out")) == (
        "metric  layer  mean    sd  95 % interval  n scored / n rows\n"
        "------  -----  ----  ----  -------------  -----------------\n"
        "p       11      0.5  0.25  0.125 to 0.75              3 / 4\n"
        "p               0.5  0.25  0.125 to 0.75              3 / 4"
    )


def test_the_table_leaves_out_what_does_not_vary() -> None:
    assert summary_table([line("", 0.5)], Path("out")).startswith("metric")
    assert summary_table([line("", 0.5), line("", 1.0, "other")], Path("out")).startswith("step")
    assert summary_table([], Path("out")) == "no metrics"


def test_a_long_table_is_cut() -> None:
    table = summary_table([line(f"index={index}", 0.5) for index in range(130)], Path("out"))
    assert table.splitlines()[-1] == "… and 30 more lines in out/summary.csv"
