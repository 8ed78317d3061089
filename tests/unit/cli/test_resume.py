"""Runs that go on: what is kept and what runs again, as --dry-run says, and that the tree is an uninterrupted run's."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from torch import Tensor

from causalab_mini.cli import session
from causalab_mini.engine.contract import Engine, Inputs, Visit
from causalab_mini.results import conditions, provenance

OWN = ("points", "seconds", "peak_bytes", "schedule")
"""What run.json says of the run and not of the numbers."""


@pytest.fixture
def go(say: Callable, project: Path, model: Path) -> Callable:
    """`go("out")`: run swap.json, three points, into a directory."""
    document = json.loads((project / "swap.json").read_text())
    document["interventions"]["swap"]["writes"]["push"]["pos"] = {"sweep": [-1, -2, -3], "as": "at"}
    document["sites"]["mid"]["layers"] = 1
    (project / "swap.json").write_text(json.dumps(document))
    return lambda out, *more: say("run", "swap.json", "--out", out, "--weights", model, "--engine", "hooks", *more)


def tree(out: str) -> dict[str, object]:
    """Everything a run left, but what run.json says of the run itself."""
    found: dict[str, object] = {}
    for path in Path(out).rglob("*"):
        name = path.relative_to(out).as_posix()
        if path.is_file() and not name.startswith(".run"):
            found[name] = path.read_bytes()
    run = json.loads(Path(out, "run.json").read_bytes())
    found["run.json"] = {key: value for key, value in run.items() if key not in OWN}
    return found


def fates(told) -> dict[str, tuple[bool, str]]:
    return {one["point"]: (one["runs"], one["reason"]) for one in told.json["points"]}


def test_a_dry_run_tells_what_would_run_and_why(go: Callable) -> None:
    told = go("out", "--dry-run")
    assert told.code == 0
    assert told.out == (
        "at=-1: run (not run yet)\nat=-2: run (not run yet)\nat=-3: run (not run yet)\n3 of 3 points would run\n"
    )
    assert not Path("out").exists()
    go("out")
    Path("out/at=-2/spread.json").write_text("[]")
    before = tree("out")
    told = go("out", "--dry-run", "--json")
    assert fates(told) == {
        "at=-1": (False, "complete"),
        "at=-2": (True, "at=-2/spread.json is not as it was written"),
        "at=-3": (False, "complete"),
    }
    assert (told.json["run"], told.json["skip"]) == (1, 2)
    assert tree("out") == before
    assert "at=-1: skip (not among --points)" in go("out", "--dry-run", "--points", "at=-3").out


@pytest.mark.parametrize(
    ("changed", "reason"), [(("--batch-size", "2"), "changed since: --batch-size"), (("--force",), "--force runs")]
)
@pytest.mark.usefixtures("project")
def test_a_dry_run_tells_what_some_points_would_cost(go: Callable, changed: tuple[str, ...], reason: str) -> None:
    """Points that were not asked for are no numbers of this run: they go, and that is said before."""
    go("out", "--points", "at=-1", "--points", "at=-2")
    found = fates(go("out", "--points", "at=-1", *changed, "--dry-run", "--json"))
    assert not found["at=-2"][0]
    assert found["at=-2"][1].startswith(f"not among --points; its files go ({reason}")
    assert found["at=-3"] == (False, "not among --points")
    go("out", "--points", "at=-1", *changed)
    assert not Path("out/at=-2/spread.json").exists()


def test_a_dry_run_refuses_what_a_run_refuses(go: Callable, project: Path) -> None:
    (project / "mine").mkdir()
    (project / "mine/thesis.tex").write_text("x")
    told = go("mine", "--dry-run")
    assert told.code == 2
    assert "holds files that no run wrote" in told.err


@pytest.mark.parametrize("mode", ["fast", "exact"])
@pytest.mark.usefixtures("project")
def test_points_that_run_later_come_out_to_the_bit(go: Callable, mode: str) -> None:
    """Though all three share calls in an uninterrupted run, where the last bit may hang on what shares a call."""
    go("whole", "--schedule", mode)
    go("out", "--schedule", mode)
    for point in ("at=-2", "at=-3"):
        Path("out", point, "spread.json").write_bytes(b"[")
        told = go("out", "--schedule", mode, "--json")
        assert told.json["points"] == {"run": 1, "kept": 2}
        assert tree("out") == tree("whole")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("rows", "changed since: the data of days/train"),
        ("code", "changed since: the code"),
        ("version", "changed since: torch"),
        ("weights", "changed since: the model's files"),
        ("batch", "changed since: --batch-size"),
        ("schedule", "changed since: --schedule"),
    ],
)
def test_whatever_changes_the_numbers_runs_them_again(
    go: Callable, project: Path, model: Path, monkeypatch: pytest.MonkeyPatch, change: str, reason: str
) -> None:
    go("out")
    more: tuple[object, ...] = ()
    if change == "rows":
        path = project / "datasets/days/train.json"
        rows = json.loads(path.read_text())
        rows[0]["input"] = "If today is Friday, then tomorrow is"
        path.write_text(json.dumps(rows))
    elif change == "code":
        monkeypatch.setattr(conditions, "code_digest", lambda: "other")
        monkeypatch.setattr(provenance, "code_digest", lambda: "other")
    elif change == "version":
        now = {**provenance.versions(), "torch": "99"}
        monkeypatch.setattr(conditions, "versions", lambda: now)
        monkeypatch.setattr(provenance, "versions", lambda: now)
    elif change == "weights":
        config = json.loads((model / "config.json").read_text())
        config["rms_norm_eps"] = 1e-3
        other = project / "other"
        other.mkdir()
        for file in model.iterdir():
            (other / file.name).write_bytes(file.read_bytes())
        (other / "config.json").write_text(json.dumps(config))
        more = ("--weights", other)
    elif change == "batch":
        more = ("--batch-size", "2")
    else:
        more = ("--schedule", "naive")
    assert {found for _, found in fates(go("out", *more, "--dry-run", "--json")).values()} == {reason}
    assert go("out", *more, "--json").json["points"] == {"run": 3, "kept": 0}
    go("fresh", *more)
    assert tree("out") == tree("fresh")
    assert go("out", *more, "--json").json["points"] == {"run": 0, "kept": 3}


@pytest.mark.parametrize(("field", "value"), [("dtype", "bf16"), ("revision", "other")])
def test_another_model_is_another_experiment(go: Callable, project: Path, field: str, value: str) -> None:
    go("out")
    before = tree("out")
    document = json.loads((project / "swap.json").read_text())
    document["model"][field] = value
    (project / "swap.json").write_text(json.dumps(document))
    told = go("out")
    assert told.code == 2
    assert "holds another experiment" in told.err
    assert tree("out") == before
    assert go("out", "--force").code == 0
    go("fresh")
    assert tree("out") == tree("fresh")


class Pressing:
    """An engine during whose nth call somebody presses Ctrl-C, so often."""

    def __init__(self, engine: Engine, call: int, times: int) -> None:
        self._engine, self._left, self._times, self.device = engine, call, times, engine.device

    def forward(self, inputs: Inputs, visits: Sequence[Visit]) -> dict[str, Tensor]:
        self._left -= 1
        if self._left == 0:
            for _ in range(self._times):
                os.kill(os.getpid(), signal.SIGINT)
        return self._engine.forward(inputs, visits)


@contextmanager
def pressed(call: int, times: int, handler: signal.Handlers | Callable = signal.default_int_handler) -> Iterator[None]:
    """Somebody presses Ctrl-C in the nth call, so often; `handler` is what it does as the command is started."""
    sound, before = session.engine_of, signal.signal(signal.SIGINT, handler)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(session, "engine_of", lambda network, name: Pressing(sound(network, name), call, times))
            yield
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_first_interrupt_lets_the_call_end(go: Callable) -> None:
    """Naive, a point is two calls of two steps each: the seventh forward is in the second point's second call."""
    go("whole", "--schedule", "naive")
    with pressed(7, 1):
        told = go("out", "--schedule", "naive")
    assert told.code == 130
    assert "stopping when the call in flight has ended; Ctrl-C again stops at once" in told.err
    assert told.err.count("done") == 2
    assert "error: interrupted: 2 of 3 points are complete" in told.err
    assert "say the same again" in told.err
    again = go("out", "--schedule", "naive", "--json")
    assert again.json["points"] == {"run": 1, "kept": 2}
    assert tree("out") == tree("whole")


def test_the_second_interrupt_stops_at_once(go: Callable) -> None:
    go("whole", "--schedule", "naive")
    with pressed(7, 2):
        told = go("out", "--schedule", "naive", "--json")
    assert told.code == 130
    assert told.json == {"ok": False, "problems": [{"path": "", "line": None, "message": "interrupted", "hint": None}]}
    go("out", "--schedule", "naive")
    assert tree("out") == tree("whole")


def test_a_run_in_the_background_is_not_interrupted(go: Callable) -> None:
    """A shell lets what it runs in the background ignore the Ctrl-C that is meant for what runs in front."""
    with pressed(7, 1, signal.SIG_IGN):
        told = go("out", "--schedule", "naive")
    assert told.code == 0
    assert told.err.count("done") == 3


def test_an_interrupt_in_the_last_call_leaves_nothing_to_do(go: Callable) -> None:
    with pressed(12, 1):
        told = go("out", "--schedule", "naive")
    assert told.code == 0
    assert told.err.count("done") == 3


def test_what_run_json_says_is_put_right(go: Callable) -> None:
    """But for what it says of the run that wrote it, which is over."""
    go("out")
    path = Path("out/run.json")
    whole = json.loads(path.read_bytes())
    for spoiled in ({**whole, "dtype": "bf16"}, {**whole, "more": 1}, {"partial": None}, []):
        path.write_text(json.dumps(spoiled))
        assert "out/run.json" in go("out").out
        assert {**json.loads(path.read_bytes()), **{name: whole[name] for name in OWN}} == whole
    before = path.read_bytes()
    assert go("out").out == ""
    assert path.read_bytes() == before


def test_some_points_first_and_the_others_later(go: Callable) -> None:
    go("whole", "--schedule", "naive")
    told = go("out", "--schedule", "naive", "--points", "at=-2", "--json")
    assert told.json["partial"] == {"rows": None, "points": {"complete": 1, "all": 3}}
    assert json.loads(Path("out/run.json").read_bytes())["partial"] == told.json["partial"]
    assert {line["point"] for line in told.json["summary"]} == {"at=-2"}
    again = go("out", "--schedule", "naive", "--points", "at=-2")
    assert again.out == ""
    assert "partial: 1 of 3 points" in again.err
    rest = go("out", "--schedule", "naive", "--json")
    assert rest.json["points"] == {"run": 2, "kept": 1}
    assert rest.json["partial"] is None
    assert tree("out") == tree("whole")
    assert go("out", "--schedule", "naive", "--points", "at=-1", "--json").json["partial"] is None
