"""Loading a folder: what it gives, what it leaves alone, and the sentence for each thing that is not there."""

import json
import logging
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests import families
from tests.recurrent import RECURRENT
from transformers.utils import logging as transformers_logging

from causalab_mini.engine import modules
from causalab_mini.engine.families import FAMILIES
from causalab_mini.engine.modules import Network, Spot, load
from causalab_mini.errors import ModelUnavailable

Folders = Callable[[str, int], Path]


@pytest.fixture
def folder(family_folder: Folders, tmp_path: Path) -> Path:
    """A copy of a small llama's folder, to be spoiled."""
    return Path(shutil.copytree(family_folder("llama", 16), tmp_path / "llama"))


def configure(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("model_type", "block", "attention", "norm", "embeddings"),
    [
        ("llama", "model.layers.1", "model.layers.1.self_attn", "model.norm", "model.embed_tokens"),
        ("mistral", "model.layers.1", "model.layers.1.self_attn", "model.norm", "model.embed_tokens"),
        ("qwen2", "model.layers.1", "model.layers.1.self_attn", "model.norm", "model.embed_tokens"),
        ("qwen3", "model.layers.1", "model.layers.1.self_attn", "model.norm", "model.embed_tokens"),
        ("gpt2", "transformer.h.1", "transformer.h.1.attn", "transformer.ln_f", "transformer.wte"),
        (
            "gpt_neox",
            "gpt_neox.layers.1",
            "gpt_neox.layers.1.attention",
            "gpt_neox.final_layer_norm",
            "gpt_neox.embed_in",
        ),
    ],
)
def test_where_a_component_lives(
    model_type: str, block: str, attention: str, norm: str, embeddings: str, family_network: Callable[..., Network]
) -> None:
    network = family_network(model_type, 16)
    assert network.locate("embeddings") == Spot(embeddings, "output")
    assert network.locate("block_input", 1) == Spot(block, "input")
    assert network.locate("attention_output", 1) == Spot(attention, "output")
    assert network.locate("mlp_output", 1) == Spot(f"{block}.mlp", "output")
    assert network.locate("block_output", 1) == Spot(block, "output")
    assert network.locate("ln_final") == Spot(norm, "output")
    assert network.locate("lm_head") == network.locate("logits") == Spot("", "output")
    for component, layer in [("embeddings", None), ("attention_output", 1), ("mlp_output", 1), ("ln_final", None)]:
        network.model.get_submodule(network.locate(component, layer).path)


def test_what_is_added_to_the_residual_stream_comes_out_of_a_norm(family_network: Callable[..., Network]) -> None:
    network = family_network("gemma2", 16)
    assert network.locate("attention_output", 1) == Spot("model.layers.1.post_attention_layernorm", "output")
    assert network.locate("mlp_output", 1) == Spot("model.layers.1.post_feedforward_layernorm", "output")


def test_every_family_is_tried_here() -> None:
    assert {family.model_type for family in FAMILIES} == {*families.FAMILIES, *families.MORE, *RECURRENT}


@pytest.mark.parametrize(
    ("component", "layer", "found"),
    [
        ("block_output", 3, "from 0 to 2, not 3"),
        ("block_output", -1, "from 0 to 2, not -1"),
        ("block_output", None, "from 0 to 2"),
        ("logits", 1, "belongs to the whole model"),
        ("input_ids", None, "no module holds 'input_ids'"),
    ],
)
def test_what_cannot_be_located(
    component: str, layer: int | None, found: str, family_network: Callable[..., Network]
) -> None:
    with pytest.raises(ValueError, match=found):
        family_network("llama", 16).locate(component, layer)


@pytest.mark.parametrize(("name", "dtype"), modules.DTYPES.items())
def test_a_loaded_model_is_of_its_dtype_in_eval_mode_without_gradients(
    name: str, dtype: torch.dtype, family_folder: Folders
) -> None:
    network = load(family_folder("qwen3", 16), name, "eager", "cpu")
    assert network.device == torch.device("cpu")
    assert network.depth == families.DEPTH
    assert {parameter.dtype for parameter in network.model.parameters()} == {dtype}
    assert not any(parameter.requires_grad for parameter in network.model.parameters())
    assert not any(module.training for module in network.model.modules())
    assert network.model.config._attn_implementation == "eager"


def test_weights_are_the_files(family_folder: Folders) -> None:
    folder = family_folder("llama", 16)
    weights = load(folder, "fp32", None, "cpu").model.state_dict()
    for name, wanted in load_file(folder / "model.safetensors").items():
        assert torch.equal(weights[name], wanted)


def test_the_default_device_is_the_best_there_is(family_folder: Folders) -> None:
    assert load(family_folder("llama", 16), "fp32").device.type == modules.best_device().type


def test_a_model_can_be_spread(family_folder: Folders) -> None:
    pytest.importorskip("accelerate")
    network = load(family_folder("llama", 16), "fp32", None, "auto")
    assert network.device == next(network.model.parameters()).device


def test_loading_is_quiet_and_leaves_logging_as_it_was(
    folder: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, "stray": torch.zeros(1)}, folder / "model.safetensors", {"format": "pt"})
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity(logging.INFO)
    transformers_logging.enable_progress_bar()
    try:
        load(folder, "fp32", None, "cpu")
        assert transformers_logging.get_verbosity() == logging.INFO
        assert transformers_logging.is_progress_bar_enabled()
    finally:
        transformers_logging.set_verbosity_warning()
        if not bars:
            transformers_logging.disable_progress_bar()
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""


def test_loading_opens_no_connection(family_folder: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    load(family_folder("gpt2", 16), "fp32", None, "cpu")


def test_code_in_the_folder_is_not_run(folder: Path) -> None:
    configure(folder, auto_map={"AutoConfig": "spoil.Config", "AutoModelForCausalLM": "spoil.Model"})
    (folder / "spoil.py").write_text("raise AssertionError('run')")
    load(folder, "fp32", None, "cpu")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.bin"])
def test_pickles_are_not_opened(folder: Path, name: str) -> None:
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(b"not to be read")
    with pytest.raises(ModelUnavailable, match="cannot be loaded"):
        load(folder, "fp32", None, "cpu")


def test_a_missing_weight_is_not_made_up(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelUnavailable, match=r"do not fill the model: model\.layers\.1\.mlp\.up_proj\.weight"):
        load(folder, "fp32", None, "cpu")


def test_a_weight_of_another_shape_is_not_taken(folder: Path) -> None:
    configure(folder, intermediate_size=48)
    with pytest.raises(ModelUnavailable):
        load(folder, "fp32", None, "cpu")


def test_a_truncated_file(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ModelUnavailable, match=str(folder)):
        load(folder, "fp32", None, "cpu")


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"no model in .*: it has no config\.json"):
        load(tmp_path / "absent", "fp32", None, "cpu")


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_a_config_that_is_none(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    with pytest.raises(ModelUnavailable, match=r"config\.json"):
        load(folder, "fp32", None, "cpu")


def test_an_unknown_model_type_names_the_known_ones(folder: Path) -> None:
    configure(folder, model_type="qwen4")
    with pytest.raises(ModelUnavailable, match="'qwen4': did you mean 'qwen"):
        load(folder, "fp32", None, "cpu")


def test_an_adapter_is_not_a_model(folder: Path) -> None:
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelUnavailable, match="adapter"):
        load(folder, "fp32", None, "cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_device_that_is_not_there(folder: Path) -> None:
    with pytest.raises(ModelUnavailable, match="'cuda' was asked for"):
        load(folder, "fp32", None, "cuda")


def test_auto_needs_accelerate(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelUnavailable, match="needs the package accelerate"):
        load(folder, "fp32", None, "auto")


@pytest.mark.parametrize(
    ("dtype", "attention", "device", "found"),
    [
        ("fp33", None, "cpu", "no dtype 'fp33': did you mean 'fp32'"),
        ("fp32", "someone/kernel", "cpu", "no attention 'someone/kernel'"),
        ("fp32", None, "gpu", "no device 'gpu'"),
    ],
)
def test_unknown_names(folder: Path, dtype: str, attention: str | None, device: str, found: str) -> None:
    with pytest.raises(ModelUnavailable, match=found):
        load(folder, dtype, attention, device)
