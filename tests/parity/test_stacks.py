"""Stacked sites: every layer's value is what a site of that layer alone gives, in every family and schedule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.building import document, generated, intervention, read, rows, step, write, write_table
from tests.desk import Desk, Seen, agree

from causalab_mini.schedule.optimize import Mode

MODELS = [("llama", 16), ("gpt2", 64), ("qwen3", 64), ("gpt_neox", 16)]
WAYS: list[tuple[str, int | None, Mode]] = [
    ("hooks", None, "naive"),
    ("traced", 2, "exact"),
    ("hooks", 2, "fast"),
    ("traced", None, "fast"),
]
SITES = {
    "all": {"component": "block_output", "layers": "all"},
    "some": {"component": "block_input", "layers": [2, 0]},
    "zs": {"component": "attention_z", "layers": [0, 2], "heads": [1]},
    "values": {"component": "attention_value", "layers": "all", "heads": [0]},
    "neurons": {"component": "mlp_neuron_output", "layers": [1, 2], "units": [3, 0, 7]},
    "mlps": {"component": "mlp_output", "layers": [1, 2]},
    "one": {"component": "block_output", "layers": 1},
    "head": {"component": "lm_head"},
}
STEPS = 3
WORD = {"index": -1, "scope": {"variable": "word"}}


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = rows(word=["Thursday", "", "Wednesday"], answer=[" Friday", "", " Monday"])
    return write_table(tmp_path_factory.mktemp("stacks"), table)


@pytest.fixture(params=MODELS, ids=lambda model: f"{model[0]}-{model[1]}")
def desk(request: pytest.FixtureRequest, root: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world(*request.param).over(root)


@pytest.fixture
def llama(root: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world("llama", 16).over(root)


def asked(body: dict, outputs: dict | None = None, saves: list[str] | None = None) -> dict:
    return document({"only": step("one", outputs=outputs, saves=saves or [])}, {"one": body}, sites=SITES)


def held(desk: Desk, body: dict, outputs: dict, saves: list[str]) -> None:
    made = asked(body, outputs, saves)
    wanted = desk.tell(made)
    for way in WAYS:
        agree(desk.run(made, *way), wanted)


def test_reads(desk: Desk) -> None:
    """Both frames, windows and rows without one, heads, units and views; what is compared is stacked or is not."""
    reads = {
        "lens": read("all", view="logits"),
        "probs": read("all", WORD, view="probs"),
        "later": read("all", generated(index=1), view="logits"),
        "stop": read("some", generated(last=2)),
        "every": read("some", generated(all=True)),
        "wide": read("some", {"last": 2}),
        "ragged": read("mlps", {"all": True}),
        "z": read("zs"),
        "kept": read("values", {"span": [0, 2]}),
        "fired": read("neurons", WORD),
        "shifted": read("some", 0),
        "last": read("head"),
        "single": read("one", WORD, view="probs"),
    }
    metrics = {
        "p": {"kind": "token_prob", "of": "probs", "token": "answer"},
        "rank": {"kind": "token_rank", "of": "lens", "token": "answer"},
        "top": {"kind": "top_k", "of": "later", "k": 2},
        "to_last": {"kind": "kl", "of": "lens", "against": "last"},
        "from_last": {"kind": "kl", "of": "last", "against": "lens"},
        "both": {"kind": "js", "of": "lens", "against": "later"},
        "beside": {"kind": "js", "of": "probs", "against": "single"},
        "moved": {"kind": "cosine", "of": "shifted", "against": "shifted"},
    }
    plain = ("lens", "stop", "every", "wide", "ragged", "z", "kept", "fired", "probs")
    outputs = {f"o_{name}": name for name in plain}
    outputs |= {f"mean_{name}": {"read": name, "reduce": "mean"} for name in ("wide", "ragged", "z", "fired")}
    held(desk, intervention(reads, metrics=metrics, decode=STEPS), outputs, ["original.generated"])


def test_writes(desk: Desk) -> None:
    """At each layer, beside other writes there, and with what one layer's read gives."""
    pushed = {"scale": 0.5}
    writes = {
        "push": write("some", {"last": 2}, "add_scaled", "v", **pushed),
        "norm": write("some", {"last": 2}, "renormalize"),
        "cap": write("mlps", generated(all=True), "clamp", lo=-0.5, hi=0.5),
        "hiss": write("all", WORD, "gaussian", seed=3, scale=0.5, missing="skip"),
        "mute": write("zs", generated(index=1), "swap", 0.0),
        "some": write("neurons", 0, "swap", 1.0, features=[0, 2]),
        "keep": write("values", 1, "lerp", 0.0, t=0.5),
    }
    reads = {
        "v": read("one", role="other"),
        "lens": read("all", -1, "m", view="logits"),
        "after": read("some", generated(index=2), "m"),
        "head": read("head", generated(index=1), "m"),
    }
    metrics = {
        "rank": {"kind": "token_rank", "of": "lens", "token": "answer"},
        "entropy": {"kind": "entropy", "of": "head"},
    }
    models = {"m": {"input": "base", "writes": list(writes)}}
    body = intervention(reads, writes, models, metrics, STEPS)
    held(desk, body, {"AFTER": "after", "LENS": {"read": "lens", "reduce": "mean"}}, ["m.generated"])


def test_one_layer_and_all_of_one_are_told_apart(llama: Desk) -> None:
    sites = {"x": {"component": "block_output", "layers": [1]}, "y": {"component": "block_output", "layers": "all"}}
    reads = {"x": read("x"), "y": read("y")}
    found = llama.one(
        document(
            {"only": step(intervention(reads), outputs={"X": "x", "Y": "y", "Z": {"read": "y", "reduce": "mean"}})}
        )
        | {"sites": sites}
    )
    assert found.tensor("X").shape == (3, 16)
    assert found.tensor("Y").shape == (3, 3, 16)
    torch.testing.assert_close(found.tensor("Y")[1], found.tensor("X"), rtol=0, atol=1e-5)
    told = found.metadata("Y")
    assert (told["dims"], told["site"], told["layers"]) == (["layer", "row", "feature"], "block_output[all]", "0,1,2")
    assert found.metadata("Z")["dims"] == ["layer", "feature"]
    assert "layers" not in found.metadata("X")


def test_rows_stand_layer_by_layer_in_the_order_of_the_site(llama: Desk) -> None:
    reads = {"x": read("some", view="logits"), "y": read("head")}
    metrics = {"e": {"kind": "entropy", "of": "x"}, "f": {"kind": "kl", "of": "y", "against": "x"}}
    seen = llama.one(asked(intervention(reads, metrics={**metrics, "g": {"kind": "entropy", "of": "y"}})))
    assert [(row.row, row.layer) for row in seen.rows("e")] == [(0, 2), (0, 0), (1, 2), (1, 0), (2, 2), (2, 0)]
    assert [row.layer for row in seen.rows("f")] == [2, 0] * 3
    assert [row.layer for row in seen.rows("g")] == [None] * 3


def test_a_write_tells_how_often_it_acted_at_all_layers_together(llama: Desk) -> None:
    """Two tokens at three layers are six; the largest change is that of any of them."""
    writes = {"push": write("all", {"last": 2}, "add_scaled", 1.0, scale=2.0), "cut": write("mlps", -1, "swap", 0.0)}
    reads = {"x": read("head", -1, "m"), "before": read("mlps")}
    metrics = {"e": {"kind": "entropy", "of": "x"}}
    for engine, batch_size, mode in WAYS:
        push, cut = llama.one(
            asked(intervention(reads, writes, metrics=metrics)), engine, batch_size, mode
        ).observed.writes
        assert push.firings == (6, 6, 6)
        assert push.largest_change == pytest.approx((2.0, 2.0, 2.0), abs=1e-5)
        assert cut.firings == (2, 2, 2)


def test_layers_past_the_last_are_told_one_by_one(llama: Desk) -> None:
    bad = asked(intervention({"x": read("far")})) | {
        "sites": {"far": {"component": "block_output", "layers": [0, 3, 9]}}
    }
    problems = llama.problems(bad)
    assert [(problem.path, problem.message.partition(" of ")[0]) for problem in problems] == [
        ("sites.far.layers", "layer 3 is past the depth"),
        ("sites.far.layers", "layer 9 is past the depth"),
    ]


def test_what_leaves_a_block_and_what_enters_the_next_undo_each_other_in_stacks(llama: Desk) -> None:
    writes = {"a": write("all", -1, "swap", 0.0), "b": write("some", -1, "clamp", lo=0.0)}
    (problem,) = llama.problems(asked(intervention({"x": read("head", -1, "m")}, writes)))
    assert problem.path == "interventions.one.models.m.writes"
    assert "'a' and 'b' both set one value of block_output[all] and block_input[2, 0]" in problem.message
    apart = {**SITES, "some": {"component": "block_input", "layers": [0]}}
    llama.compile(asked(intervention({"x": read("head", -1, "m")}, writes)) | {"sites": apart})


def test_a_norm_is_mended_where_the_writes_before_it_are_together(llama: Desk) -> None:
    writes = {
        "a": write("one", -1, "add_scaled", 2.0),
        "b": write("rest", -1, "add_scaled", 1.0),
        "norm": write("every", -1, "renormalize"),
    }
    sites = {"rest": {"component": "block_output", "layers": [0, 2]}, "every": {"component": "block_output"}}
    sites["every"]["layers"] = [2, 1, 0]
    body = intervention({"x": read("all", -1, "m")}, writes)
    made = asked(body, {"X": "x"}) | {"sites": {**SITES, **sites}}
    wanted = llama.tell(made)
    for way in WAYS:
        agree(llama.run(made, *way), wanted)


def test_an_axis_of_layers_may_have_several(llama: Desk) -> None:
    site = {"component": "block_output", "layers": {"sweep": [0, [2, 1], "all"], "as": "layer"}}
    made = asked(intervention({"x": read("swept", -1)}), {"X": "x"}) | {"sites": {"swept": site}}
    points = llama.run(made)
    assert {label: Seen(steps["only",]).tensor("X").shape[:-1] for label, steps in points.items()} == {
        "layer=0": (3,),
        "layer=_2_1_": (2, 3),
        "layer=all": (3, 3),
    }
    agree(points, llama.tell(made))
