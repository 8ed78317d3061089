"""Where a write acts, how often, and what it leaves alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from tests.building import generated, intervention, observing, read, rows, write, write_table
from tests.desk import Desk, agree
from torch import Tensor

from causalab_mini.engine.contract import Inputs, Visit
from causalab_mini.engine.hooks import Hooks
from causalab_mini.plan.explain import explain
from causalab_mini.results.tables import table_bytes
from causalab_mini.run.runner import Run
from causalab_mini.schedule.optimize import Mode

EVERY = generated(all=True)
EXACT: list[Mode] = ["naive", "exact"]
FOUR = ("If today is Thursday, tomorrow is", "Friday is", "The day after Wednesday, I think, is", "Sunday")

Random = Callable[[str, int], Desk]


@pytest.fixture
def desk(random_world: Random, tmp_path: Path) -> Desk:
    table = rows(FOUR, word=["nowhere", "Friday", "nowhere", "none"])
    return random_world("llama", 64).over(write_table(tmp_path, table))


def steered(writes: dict, decode: int = 3, **reads: dict) -> dict:
    """Both models' logits at every step, CLEAN and WRITTEN, and both continuations."""
    reads = {"clean": read("head", EVERY), "written": read("head", EVERY, "m"), **reads}
    outputs = {"CLEAN": "clean", "WRITTEN": "written"}
    body = intervention(reads, writes, decode=decode)
    return observing(body, outputs=outputs, saves=["original.generated", "m.generated"])


@pytest.mark.parametrize("mode", EXACT)
def test_a_write_on_one_row_leaves_the_others_to_the_bit(desk: Desk, mode: Mode) -> None:
    pos = {"index": 0, "scope": {"variable": "word"}}
    asked = steered({"w": write("out1", pos, "add_scaled", 4.0, missing="skip")})
    seen = desk.one(asked, "traced", None, mode)
    clean, written = seen.tensor("original.generated"), seen.tensor("m.generated")
    assert torch.equal(clean[[0, 2, 3]], written[[0, 2, 3]])
    assert not torch.equal(seen.tensor("CLEAN")[1], seen.tensor("WRITTEN")[1])
    agree(desk.run(asked, "traced", None, mode), desk.tell(asked))


@pytest.mark.parametrize("mode", EXACT)
def test_steering_from_the_first_step_and_from_the_second(desk: Desk, mode: Mode) -> None:
    def moved(pos: dict) -> list[bool]:
        seen = desk.one(steered({"w": write("out1", pos, "add_scaled", 3.0)}), "hooks", None, mode)
        same = seen.tensor("CLEAN") == seen.tensor("WRITTEN")
        return [not bool(same[:, step].all()) for step in range(3)]

    assert moved(EVERY) == [True, True, True]
    assert moved(generated(span=[1, 3])) == [False, True, True]


def test_three_ways_to_say_everywhere(desk: Desk) -> None:
    """The prompt's last token; every step; the whole prompt and every step after it."""
    last = {"w": write("out1", -1, "add_scaled", 3.0)}
    steps = {"w": write("out1", EVERY, "add_scaled", 3.0)}
    whole = {
        "w": write("out1", {"all": True}, "add_scaled", 3.0),
        "u": write("out1", generated(span=[1, 3]), "add_scaled", 3.0),
    }
    found: list[Tensor] = []
    texts: list[str] = []
    for writes in (last, steps, whole):
        asked = steered(writes)
        agree(desk.run(asked), desk.tell(asked))
        found.append(desk.one(asked).tensor("WRITTEN"))
        texts.append("\n".join(line for line in explain(desk.compile(asked).root).splitlines() if "write" in line))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert (found[one] - found[other]).abs().max() > 1e-2
        assert texts[one] != texts[other]
    # Up to the first token the first two are one thing.
    torch.testing.assert_close(found[0][:, 0], found[1][:, 0])


class Counting(Hooks):
    """Counts the calls it is asked for."""

    calls: int = 0

    def forward(self, inputs: Inputs, visits: Sequence[Visit]) -> dict[str, Tensor]:
        self.calls += 1
        return super().forward(inputs, visits)


def test_an_every_step_write_acts_once_a_row_and_step(desk: Desk) -> None:
    """Four rows, six steps: 6 firings a row, 24 in all, one call a step."""
    body = intervention({"x": read("head", EVERY, "m")}, {"w": write("out1", EVERY, "add_scaled", 0.5)}, decode=6)
    engine = Counting(desk.network)
    run = Run(desk.compile(observing(body, outputs={"X": "x"})), desk.checkpoint, desk.network, engine)
    (result,) = run.results()
    (report,) = result.observed[0].writes
    assert report.firings == (6, 6, 6, 6)
    assert engine.calls == 6


def test_a_self_swap_at_block_output_on_two_rows(random_world: Random, tmp_path: Path) -> None:
    for model in ("llama", "gpt_neox"):
        desk = random_world(model, 64).over(write_table(tmp_path / model, rows(FOUR[:2])))
        asked = steered({"w": write("out1", {"all": True}, "swap", "own")}, own=read("out1", {"all": True}))
        for mode in EXACT:
            seen = desk.one(asked, "traced", None, mode)
            assert torch.equal(seen.tensor("CLEAN"), seen.tensor("WRITTEN"))


def test_a_scale_of_zero_equals_clean_and_says_so(desk: Desk) -> None:
    asked = steered({"w": write("out1", EVERY, "add_scaled", "v", scale=0)}, v=read("out0"))
    seen = desk.one(asked, mode="exact")
    assert torch.equal(seen.tensor("CLEAN"), seen.tensor("WRITTEN"))
    assert seen.observed.warnings == ("write 'w' of 'm' changed nothing on 4 of 4 rows",)


def test_a_scale_of_1e30_is_no_number_and_strict_json(desk: Desk) -> None:
    reads = {"v": read("out0"), "x": read("head", -1, "m"), "y": read("head")}
    metrics = {
        name: {"kind": kind, "of": "x", **more}
        for name, kind, more in (
            ("entropy", "entropy", {}),
            ("best", "top_k", {}),
            ("rank", "token_rank", {"token": "answer"}),
            ("hit", "match", {"expected": "answer"}),
            ("kl", "kl", {"against": "y"}),
        )
    }
    writes = {
        "w": write("out1", -1, "add_scaled", "v", scale=1e30),
        "again": write("out2", -1, "add_scaled", "v", scale=1e30),
        "more": write("norm", -1, "add_scaled", 1e30, scale=1e30),
    }
    table = rows(FOUR, answer=[" Friday"] * 4)
    there = desk.over(write_table(desk.root / "strict", table))
    seen = there.one(observing(intervention(reads, writes, metrics=metrics)))
    for name in metrics:
        assert seen.reasons(name) == ["non_finite"] * 4, name
        written = json.loads(table_bytes(seen.table(name), "digest"), parse_constant=_refuse)
        assert [(row["value"], row["eligible"], row["reason"]) for row in written] == [(None, False, "non_finite")] * 4


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")
