"""Sites in families with recurrent mixers: what a block has not is refused, naming the fact and the other blocks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.desk import Desk

from causalab_mini.errors import ReferenceRefusal


def document(component: str, layers: object = 0, pos: object = -1, write: bool = False, **site: object) -> dict:
    made = {
        "model": {"key": "any", "dtype": "fp32"},
        "roles": {"base": {"field": "input"}},
        "sites": {"here": {"component": component, "layers": layers, **site}, "head": {"component": "lm_head"}},
        "interventions": {
            "one": {
                "reads": {"seen": {"site": "here", "pos": pos, "input": "base"}},
                "decode": 3,
            }
        },
        "steps": {
            "s": {
                "kind": "observe",
                "rows": {"base": "weekdays/train"},
                "outputs": {"seen": "seen"},
                "saves": [{"value": "seen", "file_path": "seen.safetensors"}],
            }
        },
    }
    if write:
        one = made["interventions"]["one"]
        one["writes"] = {"w": {"site": "here", "pos": pos, "mechanism": "swap", "operand": 0.0}}
        one["models"] = {"m": {"input": "base", "writes": ["w"]}}
        one["reads"]["seen"] = {"site": "head", "pos": -1, "input": "base", "model": "m"}
    return made


REFUSED = [
    (
        "qwen3_5_text",
        document("linear_attention_state", 1),
        ("sites.here.layers", "block 1 mixes tokens by attention; those with Gated DeltaNet are 0, 2"),
    ),
    (
        "qwen3_next",
        document("attention_query", [0, 1]),
        ("sites.here.layers", "block 0 mixes tokens by Gated DeltaNet; those with attention are 1"),
    ),
    ("mamba2", document("attention_key"), ("sites.here.component", "its blocks have Mamba-2 in them and nothing else")),
    ("mamba", document("mlp_output"), ("sites.here.component", "its blocks have Mamba in them and nothing else")),
    (
        "mamba",
        document("linear_attention_key"),
        ("sites.here.component", "Mamba has nothing of its own that could be called so"),
    ),
    ("llama", document("linear_attention_z"), ("sites.here.component", "its blocks mix tokens by attention alone")),
    (
        "bamba",
        document("linear_attention_decay", write=True),
        ("sites.here.component", "can only be read here: Mamba-2 makes it of other values on the way"),
    ),
    (
        "bamba",
        document("linear_attention_key", heads=[2]),
        ("sites.here.heads", "key head 2 is past the last of linear_attention_key"),
    ),
    (
        "qwen3_5_text",
        document("linear_attention_state", heads=[4]),
        ("sites.here.heads", "value head 4 is past the last of linear_attention_state"),
    ),
]


@pytest.mark.parametrize(("family", "made", "told"), REFUSED, ids=[told[1][:40] for _, _, told in REFUSED])
def test_what_a_block_has_not_is_refused(
    random_world: Callable[[str, int], Desk], family: str, made: dict, told: tuple[str, str]
) -> None:
    (problem,) = random_world(family, 16).problems(made)
    assert problem.path == told[0]
    assert told[1] in problem.message


@pytest.mark.parametrize("pos", [-1, {"frame": "generated", "index": 0}, {"frame": "generated", "all": True}])
def test_nothing_enters_the_first_step(random_world: Callable[[str, int], Desk], pos: object) -> None:
    with pytest.raises(ReferenceRefusal) as caught:
        random_world("mamba2", 16).compile(document("linear_attention_state_in", pos=pos))
    (problem,) = caught.value.problems
    assert problem.path == "interventions.one.reads.seen.pos"
    assert "is there from step 1 on" in problem.message


def test_what_enters_a_step_is_written_at_the_step_before(random_world: Callable[[str, int], Desk]) -> None:
    made = document("linear_attention_state_in", pos={"frame": "generated", "index": 1}, write=True)
    with pytest.raises(ReferenceRefusal) as caught:
        random_world("mamba2", 16).compile(made)
    (problem,) = caught.value.problems
    assert (problem.path, problem.message) == (
        "interventions.one.writes.w.site",
        "'linear_attention_state_in' can be read and not written",
    )


def test_all_layers_are_those_that_have_it(random_world: Callable[[str, int], Desk]) -> None:
    desk = random_world("qwen3_5_text", 16)
    seen = desk.one(document("linear_attention_state", "all"))
    assert seen.metadata("seen")["layers"] == "0,2"
    assert desk.one(document("attention_z", "all")).metadata("seen")["layers"] == "1"


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("linear_attention_decay", "linear_attention_value"),
        ("linear_attention_beta", "linear_attention_state"),
        ("linear_attention_state", "linear_attention_z"),
        ("linear_attention_key", "linear_attention_value"),
        ("attention_z", "linear_attention_z"),
    ],
)
def test_heads_of_other_widths_are_no_operands(
    random_world: Callable[[str, int], Desk], source: str, target: str
) -> None:
    made = document(target, 0, heads=[1], write=True)
    made["sites"]["other"] = {"component": source, "layers": 1 if source == "attention_z" else 0, "heads": [1]}
    one = made["interventions"]["one"]
    one["reads"]["r"] = {"site": "other", "pos": -1, "input": "base"}
    one["writes"]["w"]["operand"] = "r"
    with pytest.raises(ReferenceRefusal) as caught:
        random_world("qwen3_5_text", 16).compile(made)
    (problem,) = caught.value.problems
    assert problem.path == "interventions.one.writes.w.operand"
    assert "as wide as 1" in problem.message
