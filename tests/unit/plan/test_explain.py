"""The lines of a plan, written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.building import document, generated, intervention, observing, read, rows, step, write, write_table
from tests.desk import Desk

from causalab_mini.plan.explain import explain

WORD = {"variable": "word"}
TAPS = """\
<root>: Plan
  only: Observe  metrics=['h/entropy rows=[0, 2]', 'p/token_prob rows=[0]']  outputs=['ALL']  saves=['ALL.safetensors', 'm.generated.safetensors']
      forward 'original' on 'base'  (3 rows x WIDTH tokens)  decode=3
        read  'v' at mlp_output[0] pos={span:[-3, -1]} via 'identity'
      forward 'm' on 'base'  (3 rows x WIDTH tokens)  decode=3
        read  'shallow' at embeddings pos={last:2} via 'identity'
        write 'put' at block_input[0] pos={last:2} swap(v) via 'identity'
        write 'cap' at block_output[1] pos={index:-1 scope:{variable:word}} clamp(hi=2.0) via 'identity'
        read  'deep' at block_output[1] pos={index:-1 scope:{variable:word}} via 'identity'
        write 'push' at block_output[1] @step all pos={generated all} add_scaled(0.5, scale=-4.0) via 'identity' on its features [0, 3]
        write 'norm' at block_output[1] @step all pos={generated all} renormalize() via 'identity'
        read  'all' at block_output[1] @step all pos={generated all} via 'identity'
        read  'stop' at block_output[2] over 3 steps pos={generated index:-1 scope:{segment:eos}} via 'identity' as logits
        read  'late' at lm_head over 3 steps pos={generated last:2} via 'identity'
        read  'a' at lm_head @step 0 pos={generated index:0} via 'identity'
        read  'span' at block_input[1] @step 1..2 pos={generated span:[1, 3]} via 'identity'
        write 'hiss' at block_output[1] @step 1..2 pos={generated span:[1, 3]} gaussian(seed=3, scale=1.0) via 'identity'
        read  'z' at lm_head @step 1 pos={generated index:1} via 'identity'
        write 'mix' at attention_output[2] @step 2 pos={generated index:2} lerp(1.0, t=0.25) via 'identity'
"""  # noqa: E501


@pytest.fixture
def desk(tmp_path: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    table = rows(word=["Thursday", "Sunday", "Wednesday"], answer=[" Friday", " Monday", ""])
    return random_world("llama", 16).over(write_table(tmp_path, table))


def lines(desk: Desk, asked: dict) -> list[str]:
    return explain(desk.compile(asked).root).splitlines()


def columns(desk: Desk) -> int:
    return max(len(desk.checkpoint.encode(row["input"]).ids) for row in rows())


def test_taps_in_the_order_they_act(desk: Desk) -> None:
    """Prompt frame, every step, steps ascending; in each by network order, writes before reads at one place."""
    every, word = generated(all=True), {"index": -1, "scope": WORD}
    reads = {
        "z": read("head", generated(index=1), "m"),
        "a": read("head", generated(index=0), "m"),
        "late": read("head", generated(last=2), "m"),
        "stop": read("out2", generated(index=-1, scope={"segment": "eos"}), "m", view="logits"),
        "all": read("out1", every, "m"),
        "span": read("in1", generated(span=[1, 3]), "m"),
        "deep": read("out1", word, "m"),
        "shallow": read("embeddings", {"last": 2}, "m"),
        "v": read("mlp0", {"span": [-3, -1]}),
    }
    writes = {
        "push": write("out1", every, "add_scaled", 0.5, scale=-4, features=[0, 3]),
        "put": write("in0", {"last": 2}, "swap", "v"),
        "mix": write("attn2", generated(index=2), "lerp", 1.0, t=0.25),
        "cap": write("out1", word, "clamp", hi=2.0, missing="skip"),
        "hiss": write("out1", generated(span=[1, 3]), "gaussian", seed=3),
        "norm": write("out1", every, "renormalize"),
    }
    metrics = {"h": {"kind": "entropy", "of": "z"}, "p": {"kind": "token_prob", "of": "a", "token": "answer"}}
    body = intervention(reads, writes, metrics=metrics, decode=3)
    asked = observing(body, outputs={"ALL": "all"}, saves=["m.generated"])
    assert lines(desk, asked) == TAPS.replace("WIDTH", str(columns(desk))).splitlines()


def test_forwards_in_the_order_they_run(desk: Desk) -> None:
    """By operands: m2 waits for what it takes from z; ties by name, the original first."""
    reads = {
        "made": read("out1", -1, "z"),
        "x": read("head", -1, "m2"),
        "own": read("out0", role="other"),
        "again": read("out0"),
    }
    writes = {"first": write("out0", -1, "swap", 0.5), "second": write("out1", -1, "swap", "made")}
    models = {
        "m2": {"input": "base", "writes": ["second"]},
        "z": {"input": "base", "writes": ["first"]},
        "a": {"input": "other", "writes": ["first"]},
    }
    found = [line.strip() for line in lines(desk, observing(intervention(reads, writes, models))) if "forward" in line]
    where = f"(3 rows x {columns(desk)} tokens)"
    assert found == [
        f"forward 'original' on 'base'  {where}",
        f"forward 'original' on 'other'  {where}",
        f"forward 'a' on 'other'  {where}",
        f"forward 'z' on 'base'  {where}",
        f"forward 'm2' on 'base'  {where}",
    ]


def test_a_list_is_a_plan_and_points_are_plans(desk: Desk) -> None:
    body = intervention({"x": read("head", {"index": {"sweep": [0, -1], "as": "at"}})})
    asked = document({"both": step(["one", body]), "single": step("one")}, {"one": body})
    tree = [line for line in lines(desk, asked) if line.endswith(("Plan", "[]"))]
    point = [
        "    both: Plan",
        "      one: Observe  metrics=[]",
        "      both[1]: Observe  metrics=[]",
        "    single: Observe  metrics=[]",
    ]
    assert tree == ["<root>: Plan", "  at=0: Plan", *point, "  at=-1: Plan", *point]


def test_several_layers_stand_where_the_first_of_them_is(desk: Desk) -> None:
    sites = {
        "every": {"component": "block_output", "layers": "all"},
        "some": {"component": "attention_z", "layers": [2, 0], "heads": [1]},
        "middle": {"component": "block_input", "layers": 1},
        "head": {"component": "lm_head"},
    }
    reads = {"x": read("every", -1, "m"), "y": read("middle", -1, "m"), "z": read("head", -1, "m")}
    writes = {"w": write("some", {"last": 2}, "swap", 0.0), "v": write("every", -1, "add_scaled", 1.0)}
    asked = document({"only": step(intervention(reads, writes))}, sites=sites)
    assert [line.strip() for line in lines(desk, asked)[3:]] == [
        "write 'w' at attention_z[2, 0] heads=[1] pos={last:2} swap(0.0) via 'identity'",
        "write 'v' at block_output[all] pos={index:-1} add_scaled(1.0, scale=1.0) via 'identity'",
        "read  'x' at block_output[all] pos={index:-1} via 'identity'",
        "read  'y' at block_input[1] pos={index:-1} via 'identity'",
        "read  'z' at lm_head pos={index:-1} via 'identity'",
    ]


def test_a_reference_names_the_step_it_is_from(desk: Desk) -> None:
    give = intervention({"v": read("out0")})
    take = intervention({"x": read("head", -1, "m")}, {"w": write("out0", -1, "swap", {"ref": "V"})})
    asked = document({"one": step("give", outputs={"V": "v"}), "two": step("take")}, {"give": give, "take": take})
    (line,) = (line for line in lines(desk, asked) if "write" in line)
    assert line.strip() == "write 'w' at block_output[0] pos={index:-1} swap(ref one:V) via 'identity'"
