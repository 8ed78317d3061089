import json
from pathlib import Path

import pytest

from causalab_mini.checkpoint import config
from causalab_mini.checkpoint.families import CAPABILITIES
from causalab_mini.engine import families
from causalab_mini.errors import ModelUnavailable, PlanRefusal

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 30,
    "hidden_size": 576,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49152,
}


def read(path: Path, content: object, **others: object) -> config.Config:
    (path / "config.json").write_text(json.dumps(content))
    for name, other in others.items():
        (path / f"{name}.json").write_text(json.dumps(other))
    return config.read(path)


@pytest.mark.parametrize(
    ("content", "sizes"),
    [
        (LLAMA, (30, 576, 49152, 9, 3, 64)),
        ({**LLAMA, "model_type": "qwen3", "head_dim": 128}, (30, 576, 49152, 9, 3, 128)),
        (
            {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257},
            (12, 768, 50257, 12, 12, 64),
        ),
        ({**LLAMA, "model_type": "gpt_neox", "num_key_value_heads": None}, (30, 576, 49152, 9, 9, 64)),
        ({"model_type": "gemma3", "text_config": {**LLAMA, "model_type": "gemma3_text"}}, (30, 576, 49152, 9, 3, 256)),
    ],
)
def test_sizes_under_every_familys_spelling(tmp_path: Path, content: object, sizes: tuple[int, ...]) -> None:
    found = read(tmp_path, content)
    assert (found.depth, found.hidden, found.vocab, found.heads, found.kv_heads, found.head_dim) == sizes


def test_families_are_those_the_engine_maps() -> None:
    assert {row.model_type for row in CAPABILITIES} == {family.model_type for family in families.FAMILIES}


def test_a_family_without_a_map_has_facts_all_the_same(tmp_path: Path) -> None:
    found = read(tmp_path, {**LLAMA, "model_type": "stablelm"})
    assert (found.model_type, found.depth, found.supported) == ("stablelm", 30, False)
    assert read(tmp_path, LLAMA).supported


def test_end_ids_are_the_union_within_the_vocabulary(tmp_path: Path) -> None:
    found = read(tmp_path, {**LLAMA, "eos_token_id": 2}, generation_config={"eos_token_id": [5, 2, 49152, -1]})
    assert found.eos_ids == {2, 5}
    assert read(tmp_path, {**LLAMA, "eos_token_id": None}, generation_config={}).eos_ids == frozenset()


@pytest.mark.parametrize(("pad", "expected"), [(7, 7), (None, None), (-1, None), (49152, None), (True, None)])
def test_the_pad_id_is_an_id_or_nothing(tmp_path: Path, pad: object, expected: int | None) -> None:
    assert read(tmp_path, {**LLAMA, "pad_token_id": pad}).pad_id == expected


def test_the_generation_config_is_kept_as_it_stands(tmp_path: Path) -> None:
    assert read(tmp_path, LLAMA).generation_config == {}
    raw = {"repetition_penalty": 1.3, "suppress_tokens": [1]}
    assert read(tmp_path, LLAMA, generation_config=raw).generation_config == raw


@pytest.mark.parametrize("name", ["config", "tokenizer_config"])
def test_code_of_its_own_is_refused(tmp_path: Path, name: str) -> None:
    custom = {"auto_map": {"AutoModelForCausalLM": "modeling.Custom"}}
    contents = {"config": LLAMA, "tokenizer_config": {}}
    contents[name] = {**contents[name], **custom}
    with pytest.raises(PlanRefusal) as caught:
        read(tmp_path, contents["config"], tokenizer_config=contents["tokenizer_config"])
    (problem,) = caught.value.problems
    assert f"{name}.json" in problem.message
    assert "code from a hub is never run" in problem.message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({key: value for key, value in LLAMA.items() if key != "vocab_size"}, "does not say 'vocab_size'"),
        ({**LLAMA, "num_hidden_layers": "30"}, "does not say 'num_hidden_layers'"),
        ({**LLAMA, "hidden_size": 0}, "does not say 'hidden_size'"),
        ({key: value for key, value in LLAMA.items() if key != "model_type"}, "names no 'model_type'"),
        ([], "is not a JSON object"),
    ],
)
def test_a_config_that_lacks_something_is_named(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(ModelUnavailable, match=message):
        read(tmp_path, content)


def test_a_config_that_is_not_json(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ModelUnavailable, match=r"config\.json is not JSON"):
        config.read(tmp_path)


OPT = {
    "model_type": "opt",
    "num_hidden_layers": 4,
    "hidden_size": 16,
    "num_attention_heads": 2,
    "ffn_dim": 40,
    "vocab_size": 320,
}
NORMED = {"attention_output", "block_mid", "mlp_output", "attention_input_norm", "mlp_input_norm", "ln_final"}


@pytest.mark.parametrize(
    ("content", "lacking"),
    [
        (LLAMA, set()),
        ({**LLAMA, "model_type": "olmo2"}, {"attention_input_norm", "mlp_input_norm"}),
        (OPT, set()),
        ({**OPT, "_remove_final_layer_norm": True}, {"ln_final"}),
        ({**OPT, "do_layer_norm_before": False}, NORMED),
        ({**LLAMA, "model_type": "bloom"}, set()),
        (
            {**LLAMA, "model_type": "bloom", "apply_residual_connection_post_layernorm": True},
            {"attention_output", "block_mid", "mlp_output"},
        ),
        ({**LLAMA, "model_type": "bloom", "slow_but_exact": True, "pretraining_tp": 1}, set()),
        (
            {**LLAMA, "model_type": "bloom", "slow_but_exact": True, "pretraining_tp": 2},
            {
                "attention_z",
                "attention_premix",
                "mlp_activation",
                "mlp_neuron_output",
                "attention_output",
                "mlp_output",
            },
        ),
    ],
)
def test_switches_of_a_config_take_components_away(tmp_path: Path, content: object, lacking: set[str]) -> None:
    assert set(read(tmp_path, content).lacking) == lacking


@pytest.mark.parametrize(
    ("content", "mixtures"),
    [
        (LLAMA, ()),
        ({**LLAMA, "model_type": "mixtral", "num_hidden_layers": 3}, (0, 1, 2)),
        ({**LLAMA, "model_type": "qwen2_moe", "num_hidden_layers": 3}, (0, 1, 2)),
        ({**LLAMA, "model_type": "qwen2_moe", "num_hidden_layers": 5, "decoder_sparse_step": 2}, (1, 3)),
        ({**LLAMA, "model_type": "qwen2_moe", "num_hidden_layers": 4, "mlp_only_layers": [0, 3]}, (1, 2)),
        ({**LLAMA, "model_type": "qwen2_moe", "num_experts": 0}, ()),
    ],
)
def test_which_blocks_are_mixtures(tmp_path: Path, content: object, mixtures: tuple[int, ...]) -> None:
    assert read(tmp_path, content).mixtures == set(mixtures)


def test_how_many_experts_and_how_many_a_token_passes(tmp_path: Path) -> None:
    assert (found := read(tmp_path, {**LLAMA, "model_type": "mixtral"})).mixtures
    assert (found.experts, found.chosen) == (8, 2)
    found = read(tmp_path, {**LLAMA, "model_type": "qwen2_moe", "num_experts": 16, "num_experts_per_tok": 3})
    assert (found.experts, found.chosen) == (16, 3)
