"""The greedy loop: what it picks, what it never picks, and which position predicts which token."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests import plain
from tests.building import generated, intervention, observing, read, rows, write, write_table
from tests.desk import Desk, Seen, desk

from causalab_mini.schedule.optimize import Mode

STEPS = 8
MODES: list[Mode] = ["naive", "exact", "fast"]
MODELS = [("llama", 64), ("qwen3", 16), ("gpt2", 64), ("gpt_neox", 16)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("decode"), rows(end=[1] * 3))


@pytest.fixture(params=MODELS, ids=lambda model: f"{model[0]}-{model[1]}")
def world(request: pytest.FixtureRequest, root: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world(*request.param).over(root)


@pytest.fixture
def llama(root: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world("llama", 16).over(root)


def speaking(decode: int = STEPS, **metrics: dict) -> dict:
    """A document whose original model speaks; the head is read at every step as x0, x1, …"""
    reads = {f"x{step}": read("head", generated(index=step)) for step in range(decode)}
    reads |= {"every": read("head", generated(all=True)), "deep": read("out1", generated(all=True))}
    outputs = {"EVERY": "every", "DEEP": "deep"}
    body = intervention(reads, metrics=metrics, decode=decode)
    return observing(body, outputs=outputs, saves=["original.generated"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("engine", ["hooks", "traced"])
def test_the_ids_are_those_of_generate(world: Desk, engine: str, mode: Mode) -> None:
    prompts = [world.checkpoint.encode(row["input"]).ids for row in rows()]
    ids, _ = plain.generate(world.network.model, *plain.pad(prompts), STEPS, [1])
    seen = world.one(speaking(), engine, None, mode)
    assert torch.equal(seen.tensor("original.generated"), ids)


def test_the_logits_are_those_of_generate_to_the_bit(world: Desk) -> None:
    """Read at every step in one batch, as `generate` runs it: rows that are told apart by padding alone."""
    prompts = [world.checkpoint.encode(row["input"]).ids for row in rows()]
    _, logits = plain.generate(world.network.model, *plain.pad(prompts), STEPS, [1])
    for engine in ("hooks", "traced"):
        seen = world.one(speaking(), engine, None, "naive")
        assert torch.equal(seen.tensor("EVERY"), torch.stack(logits, dim=1).float())


def test_a_generation_config_has_no_say(llama: Desk, tmp_path: Path) -> None:
    """Settings that would change what `generate` says leave the raw argmax as it is."""
    wanted = llama.one(speaking()).ids("original")
    folder = tmp_path / "penalised"
    shutil.copytree(llama.folder, folder)
    config = json.loads((folder / "generation_config.json").read_text())
    config |= {"repetition_penalty": 1.3, "suppress_tokens": wanted[0][1:3], "no_repeat_ngram_size": 2}
    (folder / "generation_config.json").write_text(json.dumps(config))
    penalised = desk(folder, llama.root)
    assert penalised.network.model.generation_config.repetition_penalty == 1.3
    for engine in ("hooks", "traced"):
        assert penalised.one(speaking(), engine).ids("original") == wanted
    ids = torch.tensor([llama.checkpoint.encode(rows()[0]["input"]).ids])
    said = penalised.network.model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=STEPS, min_new_tokens=STEPS, do_sample=False
    )
    assert said[0, ids.shape[1] :].tolist() != wanted[0]


def test_token_k_is_predicted_at_step_k(world: Desk) -> None:
    metrics = {f"best{step}": {"kind": "top_k", "of": f"x{step}", "k": 1} for step in range(STEPS)}
    seen = world.one(speaking(**metrics))
    ids = seen.ids("original")
    for step in range(STEPS):
        assert [best[0][0] for best in seen.values(f"best{step}")] == [row[step] for row in ids]
        assert seen.positions(f"best{step}") == [(step,)] * 3
        assert seen.tokens(f"best{step}") == [(world.checkpoint.token_text(row[step]),) for row in ids]


def test_the_residual_at_step_k_is_of_the_position_that_predicts_token_k(world: Desk) -> None:
    """Step 0 is the prompt's last token; step k is where the model reads token k − 1."""
    seen = world.one(speaking(3), mode="naive")
    spot = world.network.locate("block_output", 1)
    for row, ids in enumerate(seen.ids("original")):
        prompt = [*world.checkpoint.encode(rows()[row]["input"]).ids]
        fed = [*prompt, *ids[:2]]
        looks = [plain.Look(str(step), spot.path, spot.side, len(prompt) - 1 + step) for step in range(3)]
        _, values = plain.forward(world.network.model, fed, (), looks)
        for step in range(3):
            torch.testing.assert_close(seen.tensor("DEEP")[row, step], values[str(step)], rtol=1e-4, atol=1e-4)


def test_cuts_of_the_finished_continuation_are_cuts_of_its_steps(llama: Desk) -> None:
    cuts = {
        "last": ({"index": -1}, (4,)),
        "before": ({"index": -5}, (0,)),
        "two": ({"last": 2}, (3, 4)),
        "middle": ({"span": [-4, -2]}, (1, 2)),
        "mixed": ({"span": [1, -1]}, (1, 2, 3)),
    }
    reads = {name: read("out1", generated(**cut)) for name, (cut, _) in cuts.items()}
    reads["every"] = read("out1", generated(all=True))
    outputs = {name.upper(): name for name in reads}
    for mode in MODES:
        seen = llama.one(observing(intervention(reads, decode=5), outputs=outputs), mode=mode)
        every = seen.tensor("EVERY")
        assert every.shape == (3, 5, 16)
        for name, (_, steps) in cuts.items():
            found = seen.tensor(name.upper())
            assert torch.equal(found.reshape(3, len(steps), 16), every[:, steps]), name


def wanting_to_stop(llama: Desk, at: int, **metrics: dict) -> Seen:
    """A model m whose logit of EOS is raised to 50 at one step."""
    writes = {"stop": write("head", generated(index=at), "swap", 50.0, features=[1])}
    reads = {f"x{step}": read("head", generated(index=step), "m") for step in range(4)}
    return llama.one(observing(intervention(reads, writes, metrics=metrics, decode=4), saves=["m.generated"]))


def test_eos_is_never_picked_and_its_raw_probability_is_seen(llama: Desk) -> None:
    p_end = {
        f"p{step}": {"kind": "token_prob", "of": f"x{step}", "token": "end", "token_form": "id"} for step in range(4)
    }
    seen = wanting_to_stop(llama, 2, **p_end, best={"kind": "match", "of": "x2", "expected": "end", "token_form": "id"})
    assert seen.values("p2") == pytest.approx([1.0] * 3)
    assert seen.values("best") == [1.0] * 3
    assert max(seen.values("p1")) < 0.5
    assert all(len(row) == 4 and 1 not in row for row in seen.ids("m"))
    assert [row.stopped_at for row in seen.rows("p0")] == [2, 2, 2]


def test_a_row_that_never_wanted_to_stop_says_so(llama: Desk) -> None:
    seen = llama.one(speaking(4, h={"kind": "entropy", "of": "x3"}))
    assert [row.stopped_at for row in seen.rows("h")] == [None] * 3
    silent = llama.one(observing(intervention({"x": read("head")}, metrics={"h": {"kind": "entropy", "of": "x"}})))
    assert seen.table("h").decodes
    assert not silent.table("h").decodes


def test_near_ties_are_told(llama: Desk) -> None:
    """Two logits that are equal but for 5e-4: another honest execution may choose the other."""
    here = generated(index=1)
    writes = {
        "zero": write("head", here, "swap", 0.0),
        "one": write("head", here, "add_scaled", 30.0, features=[300]),
        "two": write("head", here, "add_scaled", 30.0005, features=[301]),
    }
    body = intervention({"x": read("head", here, "m")}, writes, decode=3)
    seen = llama.one(observing(body, saves=["m.generated"]))
    ties = [tie for tie in seen.observed.near_ties if tie.step == 1]
    assert [(tie.example_id, tie.forward) for tie in ties] == [(f"row-{row}", "m on base") for row in range(3)]
    assert [tie.margin for tie in ties] == pytest.approx([5e-4] * 3, abs=1e-5)
    assert [row[1] for row in seen.ids("m")] == [301] * 3


@pytest.mark.parametrize("mode", MODES)
def test_batches_and_order_do_not_matter(world: Desk, mode: Mode, tmp_path: Path) -> None:
    table = rows()
    backwards = world.over(write_table(tmp_path, table[::-1]))
    wanted = world.one(speaking(), mode=mode).ids("original")
    for batch_size in (1, 2):
        assert world.one(speaking(), "hooks", batch_size, mode).ids("original") == wanted
    assert backwards.one(speaking(), mode=mode).ids("original") == wanted[::-1]


@pytest.mark.parametrize("mode", MODES)
def test_every_step_written_equals_one_pass_over_the_finished_text(world: Desk, mode: Mode) -> None:
    """A write at `{generated all}` is, on what was said, one forward with it at the last prompt token and after."""
    everywhere = generated(all=True)
    writes = {"w": write("out0", everywhere, "add_scaled", 0.5)}
    reads = {"deep": read("out2", everywhere, "m"), "x": read("head", everywhere, "m")}
    body = intervention(reads, writes, decode=4)
    seen = world.one(observing(body, outputs={"DEEP": "deep", "X": "x"}, saves=["m.generated"]), mode=mode)
    here, there = world.network.locate("block_output", 0), world.network.locate("block_output", 2)
    for row, ids in enumerate(seen.ids("m")):
        prompt = [*world.checkpoint.encode(rows()[row]["input"]).ids]
        tokens = range(len(prompt) - 1, len(prompt) + 3)
        edits = [plain.Edit(here.path, here.side, token, lambda value: value + 0.5) for token in tokens]
        looks = [plain.Look(str(token), there.path, there.side, token) for token in tokens]
        logits, values = plain.forward(world.network.model, [*prompt, *ids[:3]], edits, looks)
        deep = torch.stack([values[str(token)] for token in tokens])
        torch.testing.assert_close(seen.tensor("DEEP")[row], deep, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(seen.tensor("X")[row], logits[-4:], rtol=1e-4, atol=1e-4)
