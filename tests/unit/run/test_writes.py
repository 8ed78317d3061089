"""What a write changes, and what it leaves alone to the bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.building import generated, intervention, observing, read, rows, write, write_table
from tests.desk import Desk, Seen
from torch import Tensor

from causalab_mini.engine.modules import load
from causalab_mini.schedule.optimize import Mode

STEPS = 4
EVERY_STEP = generated(all=True)
MODELS = [("llama", 16), ("gpt2", 64), ("gpt_neox", 64), ("qwen3", 16)]
WAYS: list[tuple[str, Mode]] = [("hooks", "naive"), ("traced", "exact")]
in_exact_schedules = pytest.mark.parametrize(("engine", "mode"), WAYS)


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("writes"), rows(word=["Thursday", "", "Wednesday"]))


@pytest.fixture(params=MODELS, ids=lambda model: f"{model[0]}-{model[1]}")
def desk(request: pytest.FixtureRequest, root: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world(*request.param).over(root)


@pytest.fixture
def llama(root: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world("llama", 16).over(root)


def watched(writes: dict, **more: object) -> dict:
    """Both models' residual stream, logits and ids at every step, beside the reads the writes need."""
    reads = {
        "h_original": read("out1", EVERY_STEP),
        "h_m": read("out1", EVERY_STEP, "m"),
        "l_original": read("head", EVERY_STEP),
        "l_m": read("head", EVERY_STEP, "m"),
        **more,
    }
    outputs = {name.upper(): name for name in ("h_original", "h_m", "l_original", "l_m")}
    saves = ["original.generated", "m.generated"]
    return observing(intervention(reads, writes, decode=STEPS), outputs=outputs, saves=saves)


def pairs(seen: Seen) -> list[tuple[Tensor, Tensor]]:
    """What the unwritten and the written model gave, [rows, steps, …] each."""
    both = [(f"{kind}_ORIGINAL", f"{kind}_M") for kind in "HL"] + [("original.generated", "m.generated")]
    return [(seen.tensor(one), seen.tensor(other)) for one, other in both]


@in_exact_schedules
@pytest.mark.parametrize("step", [1, 3])
def test_steps_before_a_write_are_those_of_the_unwritten_run(desk: Desk, step: int, engine: str, mode: Mode) -> None:
    writes = {"w": write("out0", generated(index=step), "add_scaled", 2.0)}
    for clean, written in pairs(desk.one(watched(writes), engine, None, mode)):
        assert torch.equal(clean[:, :step], written[:, :step])
        if clean.is_floating_point():
            changed = (clean[:, step] != written[:, step]).flatten(1).any(1)
            assert changed.all()


@in_exact_schedules
@pytest.mark.parametrize(
    ("site", "pos"),
    [("out0", {"all": True}), ("out1", EVERY_STEP), ("in2", -1), ("attn0", {"last": 2}), ("embeddings", {"all": True})],
)
def test_a_self_swap_changes_nothing(desk: Desk, site: str, pos: object, engine: str, mode: Mode) -> None:
    document = watched({"w": write(site, pos, "swap", "own")}, own=read(site, pos))
    for batch_size in (None, 1):
        seen = desk.one(document, engine, batch_size, mode)
        for clean, written in pairs(seen):
            assert torch.equal(clean, written)
        (report,) = seen.observed.writes
        assert report.largest_change == (0.0, 0.0, 0.0)
        assert all(report.firings)
        assert seen.observed.warnings == ("write 'w' of 'm' changed nothing on 3 of 3 rows",)


def test_a_self_swap_in_a_fast_schedule_changes_less_than_rounding(desk: Desk) -> None:
    document = watched({"w": write("out1", EVERY_STEP, "swap", "own")}, own=read("out1", EVERY_STEP))
    for clean, written in pairs(desk.one(document, mode="fast")):
        torch.testing.assert_close(clean, written, rtol=1e-4, atol=1e-4)


@in_exact_schedules
def test_adding_nothing_changes_nothing_and_says_so(desk: Desk, engine: str, mode: Mode) -> None:
    document = watched({"w": write("out1", EVERY_STEP, "add_scaled", "own", scale=0)}, own=read("in1", -1))
    seen = desk.one(document, engine, None, mode)
    for clean, written in pairs(seen):
        assert torch.equal(clean, written)
    assert seen.observed.warnings == ("write 'w' of 'm' changed nothing on 3 of 3 rows",)


def test_a_write_that_changes_something_is_not_warned_about(llama: Desk) -> None:
    seen = llama.one(watched({"w": write("out1", EVERY_STEP, "add_scaled", 0.5)}))
    assert seen.observed.warnings == ()
    (report,) = seen.observed.writes
    assert report.largest_change == (0.5, 0.5, 0.5) or max(report.largest_change) == pytest.approx(0.5, abs=1e-6)


@in_exact_schedules
def test_a_write_on_some_rows_leaves_the_others_to_the_bit(desk: Desk, engine: str, mode: Mode) -> None:
    pos = {"index": -1, "scope": {"variable": "word"}}
    document = watched({"w": write("out0", pos, "add_scaled", 3.0, missing="skip")})
    document["interventions"]["one"]["metrics"] = {"h": {"kind": "entropy", "of": "last"}}
    document["interventions"]["one"]["reads"]["last"] = read("head", -1, "m")
    for batch_size in (None, 2):
        seen = desk.one(document, engine, batch_size, mode)
        clean, written = seen.tensor("original.generated"), seen.tensor("m.generated")
        assert torch.equal(clean[1], written[1])
        assert seen.reasons("h") == [None, "write_skipped", None]
        # Nothing is measured on the row that is not written, and its residual stream is not saved.
        assert seen.tensor("H_M")[1].isnan().all()
        assert seen.metadata("H_M")["missing"] == {"row-1": "write_skipped"}
        for name in ("H", "L"):
            assert (seen.tensor(f"{name}_M")[[0, 2]] != seen.tensor(f"{name}_ORIGINAL")[[0, 2]]).any()
        (report,) = seen.observed.writes
        assert report.firings == (1, 0, 1)
        assert report.largest_change[1] is None


@in_exact_schedules
def test_a_written_row_does_not_move_the_row_beside_it(
    engine: str, mode: Mode, random_world: Callable[[str, int], Desk], tmp_path: Path
) -> None:
    """A row that is not written, and read all the same, because another model's write lands on all rows."""
    table = rows(word=["Thursday", "Friday", "Wednesday"], value=["Thursday", "nowhere", "Wednesday"])
    desk = random_world("llama", 64).over(write_table(tmp_path, table))
    clean = desk.one(watched({"w": write("out0", -1, "add_scaled", 0.0)}), engine, None, mode)
    skipped = write("out0", {"index": -1, "scope": {"variable": "value"}}, "add_scaled", 3.0, missing="skip")
    written = desk.one(watched({"w": skipped}), engine, None, mode)
    assert written.ids("m")[1] == clean.ids("m")[1]
    assert written.ids("m") != clean.ids("m")


@pytest.mark.parametrize("mode", ["naive", "exact", "fast"])
def test_how_often_a_write_acts(llama: Desk, mode: Mode) -> None:
    writes = {
        "every": write("out0", EVERY_STEP, "add_scaled", 0.5),
        "prompt": write("out1", {"last": 2}, "add_scaled", 0.5),
        "later": write("out2", generated(span=[1, STEPS]), "add_scaled", 0.5),
    }
    seen = llama.one(watched(writes), mode=mode)
    assert {report.name: report.firings for report in seen.observed.writes} == {
        "every": (STEPS,) * 3,
        "prompt": (2,) * 3,
        "later": (STEPS - 1,) * 3,
    }


@pytest.mark.parametrize("engine", ["hooks", "traced"])
def test_half_precision_is_exact_of_its_own(llama: Desk, engine: str) -> None:
    """A model in bf16 gets an exact schedule unless told otherwise: the same promises, to the bit."""
    half = Desk(llama.folder, load(llama.folder, "bf16", None, "cpu"), llama.root)
    swap = watched({"w": write("out1", EVERY_STEP, "swap", "own")}, own=read("out1", EVERY_STEP))
    for clean, written in pairs(half.one(swap, engine)):
        assert torch.equal(clean, written)
    later = half.one(watched({"w": write("out0", generated(index=2), "add_scaled", 2.0)}), engine)
    naive = half.one(watched({"w": write("out0", generated(index=2), "add_scaled", 2.0)}), engine, mode="naive")
    for (clean, written), (_, plain) in zip(pairs(later), pairs(naive), strict=True):
        assert torch.equal(clean[:, :2], written[:, :2])
        assert torch.equal(written, plain)
        assert not torch.equal(clean, written)
