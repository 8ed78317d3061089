"""Sites inside attention and the MLP under every schedule: heads, units, both frames, rows of unequal length."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.building import PROMPTS, document, generated, intervention, observing, read, rows, step, write, write_table
from tests.desk import Desk, Points, Seen

from causalab_mini.schedule.optimize import Mode

MODELS = [("llama", 16), ("gemma2", 16), ("gpt2", 64), ("gpt_neox", 64), ("qwen3", 16)]
WAYS: list[tuple[str, Mode]] = [("traced", "naive"), ("hooks", "exact"), ("hooks", "fast"), ("traced", "fast")]
PLACES = {
    "norm_in": {"component": "attention_input_norm"},
    "query": {"component": "attention_query", "heads": [1]},
    "key": {"component": "attention_key", "heads": [0]},
    "value": {"component": "attention_value"},
    "z": {"component": "attention_z", "heads": [1]},
    "premix": {"component": "attention_premix", "heads": [0]},
    "mid": {"component": "block_mid"},
    "mlp_in": {"component": "mlp_input"},
    "act": {"component": "mlp_activation", "units": [3, 1]},
    "neurons": {"component": "mlp_neuron_output", "units": [0, 7, 2]},
}


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # The first and the last prompt begin alike, so that schedules have something to share.
    return write_table(tmp_path_factory.mktemp("inside"), rows([*PROMPTS, "If today is Thursday, then I"]))


@pytest.fixture(params=MODELS, ids=lambda model: f"{model[0]}-{model[1]}")
def desk(request: pytest.FixtureRequest, root: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world(*request.param).over(root)


@pytest.fixture
def llama(root: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world("llama", 64).over(root)


def placed(asked: dict, **sites: dict) -> dict:
    """The document with more sites."""
    return {**asked, "sites": {**asked["sites"], **sites}}


def patched(name: str) -> dict:
    """An interchange in the prompt and a shift in the continuation at a place of two layers, looked at there."""
    reads = {
        "there": read("here", {"last": 2}, role="other"),
        "now": read("here", {"last": 2}, "m"),
        "later": read("here", generated(all=True), "m"),
        "said": read("head", generated(all=True), "m"),
    }
    writes = {
        "prompt": write("here", {"last": 2}, "swap", "there"),
        "after": write("here", generated(index=2), "add_scaled", 0.5, scale=2.0),
    }
    models = {"m": {"input": "base", "writes": list(writes)}}
    body = intervention(reads, writes, models, decode=4)
    asked = observing(body, outputs={name.upper(): name for name in reads if name != "there"}, saves=["m.generated"])
    return placed(asked, here={**PLACES[name], "layers": {"sweep": [0, 1], "as": "layer"}})


def same(one: Points, other: Points, *, exactly: bool) -> None:
    assert one.keys() == other.keys()
    for label, steps in one.items():
        for path, observed in steps.items():
            found = {b.name: b.tensors for b in other[label][path].bundles}
            for bundle in observed.bundles:
                for name, tensor in bundle.tensors.items():
                    if exactly or tensor.dtype == torch.int64:
                        assert torch.equal(tensor, found[bundle.name][name]), (label, name)
                    else:
                        torch.testing.assert_close(tensor, found[bundle.name][name], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", PLACES)
def test_every_schedule_and_engine_give_the_same(name: str, desk: Desk) -> None:
    asked = patched(name)
    if name == "mid" and desk.checkpoint.config.parallel:
        (problem,) = desk.problems(asked)
        assert problem.path == "sites.here.component"
        assert "no block_mid: its blocks run attention and the MLP side by side" in problem.message
        return
    plainly = desk.run(asked, "hooks", mode="naive")
    for engine, mode in WAYS:
        same(plainly, desk.run(asked, engine, mode=mode), exactly=mode != "fast")


def test_a_row_alone_is_the_row_in_the_batch(llama: Desk) -> None:
    for name in ("query", "key", "value", "mid"):
        asked = patched(name)
        same(llama.run(asked, batch_size=1, mode="naive"), llama.run(asked, mode="fast"), exactly=False)


def test_a_head_is_a_slice_of_the_whole(llama: Desk) -> None:
    width, heads = llama.checkpoint.head_dim, [3, 0]
    reads = {"whole": read("z"), "part": read("part")}
    asked = placed(
        observing(intervention(reads), outputs={"WHOLE": "whole", "PART": "part"}),
        z={"component": "attention_z", "layers": 1},
        part={"component": "attention_premix", "layers": 1, "heads": heads},
    )
    seen = llama.one(asked)
    whole, part = seen.tensor("WHOLE"), seen.tensor("PART")
    assert seen.metadata("PART")["heads"] == "3,0"
    assert "heads" not in seen.metadata("WHOLE")
    assert whole.shape[-1] == 4 * width
    wanted = torch.cat([whole[:, head * width : (head + 1) * width] for head in heads], dim=-1)
    assert torch.equal(part, wanted)


def test_a_written_key_reaches_every_later_step_and_no_other_head(llama: Desk) -> None:
    """A write in the prompt is told to the continuation by the cache alone."""
    where = generated(all=True)
    reads = {"z": read("z", where, "m"), "clean": read("z", where)}
    writes = {"zero": write("value", {"index": 1}, "swap", 0.0)}
    body = intervention(reads, writes, decode=3)
    asked = placed(
        observing(body, outputs={"Z": "z", "CLEAN": "clean"}),
        z={"component": "attention_z", "layers": 1},
        value={"component": "attention_value", "layers": 1, "heads": [1]},
    )
    for mode in ("naive", "fast"):
        seen: Seen = llama.one(asked, mode=mode)
        z, clean = (seen.tensor(name).unflatten(-1, (4, -1)) for name in ("Z", "CLEAN"))
        # Two query heads share a key head.
        moved = (z[:, 0] - clean[:, 0]).abs().amax(-1) > 1e-6
        assert moved.tolist() == [[False, False, True, True]] * len(z)
        assert ((z[:, 1:] - clean[:, 1:]).abs().amax(-1) > 1e-6)[:, :, 2:].all()


def test_writes_at_different_heads_do_not_contradict(llama: Desk) -> None:
    def asked(first: dict, second: dict) -> dict:
        writes = {"a": write("one", -1, "swap", 0.0), "b": write("two", -1, "swap", 1.0)}
        return placed(
            observing(intervention({"x": read("head", -1, "m")}, writes), outputs={"X": "x"}),
            one={"component": "attention_z", "layers": 1, **first},
            two={"component": "attention_premix", "layers": 1, **second},
        )

    llama.compile(asked({"heads": [0, 1]}, {"heads": [2]}))
    for first, second in [({"heads": [0, 1]}, {"heads": [1]}), ({}, {"heads": [1]})]:
        assert any("the second would undo the first" in p.message for p in llama.problems(asked(first, second)))


@pytest.mark.parametrize(
    ("site", "path", "message", "hint"),
    [
        ({"component": "attention_z", "heads": [4]}, "heads", "query head 4 is past the last", "heads are 0 to 3"),
        ({"component": "attention_key", "heads": [2]}, "heads", "has 2 key-value heads", "heads are 0 to 1"),
        ({"component": "mlp_activation", "units": [128]}, "units", "unit 128 is past the last", "units are 0 to 127"),
    ],
)
def test_past_the_axis(site: dict, path: str, message: str, hint: str, llama: Desk) -> None:
    asked = observing(intervention({"x": read("here")}), outputs={"X": "x"})
    (problem,) = llama.problems(placed(asked, here={**site, "layers": 0}))
    assert problem.path == f"sites.here.{path}"
    assert message in problem.message
    assert problem.hint == hint


def test_a_family_that_caps_its_scores_has_no_sdpa(root: Path, random_world: Callable[[str, int], Desk]) -> None:
    gemma = random_world("gemma2", 16).over(root)
    asked = observing(intervention({"x": read("head")}), outputs={"X": "x"})
    (problem,) = gemma.problems({**asked, "model": {**asked["model"], "attn_implementation": "sdpa"}})
    assert problem.path == "model.attn_implementation"
    assert '"eager"' in (problem.hint or "")


def test_an_output_is_an_operand_of_as_many_heads(llama: Desk) -> None:
    """The mean of a head over rows, put in for that head."""
    sites = {
        "head1": {"component": "attention_z", "layers": 1, "heads": [1]},
        "whole": {"component": "attention_z", "layers": 1},
    }
    means = intervention({"x": read("head1")})
    ablated = intervention({"y": read("whole", -1, "m")}, {"w": write("head1", -1, "swap", {"ref": "mean"})})
    steps = {
        "first": step("means", outputs={"mean": {"read": "x", "reduce": "mean"}}),
        "second": step("ablated", outputs={"Y": "y"}),
    }
    asked = placed(document(steps, {"means": means, "ablated": ablated}), **sites)
    (points,) = llama.run(asked).values()
    seen = {path[-1]: Seen(observed) for path, observed in points.items()}
    mean = seen["first"].tensor("mean").flatten()
    width = llama.checkpoint.head_dim
    for row in seen["second"].tensor("Y"):
        assert torch.equal(row[width : 2 * width], mean)
