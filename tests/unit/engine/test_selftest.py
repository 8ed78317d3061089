"""The self-test: what it proves of every family, refuses of spoiled ones, and makes of strangers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests import families, strangers
from tests.recurrent import RECURRENT
from torch import Tensor, nn

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.checkpoint.verdicts import Proof, Verdict
from causalab_mini.engine import mixers, taps
from causalab_mini.engine.modules import Network, load
from causalab_mini.engine.selftest import examine
from causalab_mini.errors import ModelUnavailable

ADDED = {"attention_output", "block_mid", "mlp_output"}
ENTERING = {"mlp_input_norm", "mlp_input"}
INSIDE_MLP = {"mlp_activation", "mlp_neuron_output"}
KEPT = {"attention_key", "attention_value"}
VALUES = {"attention_key", "attention_value", "attention_query", "attention_z", "attention_premix"}
RECURRED = {f"linear_attention_{part}" for part in ("key", "value", "decay", "beta", "state", "state_in")}
PATTERNS = {"attention_scores", "attention_probs"}
UNPROVEN = {
    # Norms after the sums leave nothing to compare with.
    "opt_post": {"mlp_input", "mlp_neuron_output"},
    # A gate after attention hides what its heads hand on.
    **dict.fromkeys(("qwen3_next", "qwen3_5_text"), VALUES),
}
"""Of known families, what their rows alone answer for."""


def lacking(verdict: Verdict, proof: Proof) -> set[str]:
    return {name for name, finding in verdict.findings.items() if finding.proof is proof}


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Network, Checkpoint]]:
    def at(model_type: str) -> tuple[Network, Checkpoint]:
        folder = strangers.write_folder(tmp_path_factory.mktemp("strangers") / model_type, model_type)
        return load(folder, "fp32", None, "cpu"), resolve(str(folder))

    return at


@pytest.mark.parametrize("model_type", [*families.FAMILIES, *families.MORE, *families.VARIANTS, *RECURRENT])
def test_everything_a_known_family_has_is_proved(
    model_type: str, family_network: Callable[..., Network], family_folder: Callable[[str, int], Path]
) -> None:
    checkpoint = resolve(str(family_folder(model_type, 64))).untested()
    network = family_network(model_type, 64)
    verdict = examine(network, checkpoint)
    assert verdict.whole == ""
    assert lacking(verdict, Proof.REFUSED) == set()
    # Patterns are there under eager attention, under which only some families compute of their own accord.
    eager = PATTERNS & {*checkpoint.components()} if not network.eager else set()
    assert lacking(verdict, Proof.UNPROVEN) == UNPROVEN.get(model_type, set()) | eager
    assert {*checkpoint.components()} == {*verdict.findings} - {"views"}


@pytest.mark.parametrize("model_type", [name for name in (*families.FAMILIES, *families.MORE) if name != "bloom"])
def test_patterns_are_proved_under_eager_attention(model_type: str, family_folder: Callable[[str, int], Path]) -> None:
    folder = family_folder(model_type, 64)
    verdict = examine(load(folder, "fp32", "eager", "cpu"), resolve(str(folder)).untested())
    assert {verdict.of(name).proof for name in PATTERNS} == {Proof.PROVED}


def test_patterns_that_are_not_those_of_the_heads_are_refused(family_folder: Callable[[str, int], Path]) -> None:
    folder = family_folder("llama", 64)
    network = load(folder, "fp32", "eager", "cpu")
    tap = network.model.get_submodule(network.locate("attention_probs", 1).path)
    tap.forward = lambda value: value * 0.5
    verdict = examine(network, resolve(str(folder)).untested())
    assert "do not sum to 1" in verdict.of("attention_probs").reason
    tap.forward = lambda value: value.flip(2)
    verdict = examine(network, resolve(str(folder)).untested())
    assert "the softmax of the scores of block 1 is not attention_probs" in verdict.of("attention_scores").reason


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_half_precision_proves_as_much(
    dtype: str, family_network: Callable[..., Network], family_folder: Callable[[str, int], Path]
) -> None:
    for model_type in ("llama", "gemma2", "bloom"):
        checkpoint = resolve(str(family_folder(model_type, 64))).untested()
        verdict = examine(family_network(model_type, 64, dtype), checkpoint)
        assert verdict.dtype == dtype
        assert lacking(verdict, Proof.REFUSED) == set()


@pytest.mark.parametrize(
    ("model_type", "unproven", "refused"),
    [
        ("phi3", set(), set()),
        ("stablelm", set(), set()),
        ("starcoder2", set(), set()),
        ("granite", ADDED | ENTERING, set()),
        ("cohere", {"block_mid"}, set()),
        # One key head for all, which its config says in words of its own.
        ("falcon", VALUES - KEPT | {"block_mid"}, KEPT),
        ("olmoe", INSIDE_MLP, set()),
        ("exaone4", set(), {"attention_input_norm", "mlp_input_norm"}),
        # Nobody comes by its queries, and where no heads share a value nothing else counts them.
        ("mpt", VALUES, set()),
    ],
)  # fmt: skip
def test_strangers(
    model_type: str,
    unproven: set[str],
    refused: set[str],
    stranger: Callable[[str], tuple[Network, Checkpoint]],
) -> None:
    network, checkpoint = stranger(model_type)
    assert checkpoint.config.capability is None
    verdict = examine(network, checkpoint)
    assert verdict.whole == ""
    assert lacking(verdict, Proof.UNPROVEN) == unproven | PATTERNS
    assert lacking(verdict, Proof.REFUSED) == refused
    known = replace(checkpoint, verdict=verdict)
    assert not {*known.components()} & (unproven | refused)
    assert {"block_output", "logits", "ln_final"} <= {*known.components()}
    assert known.blind() is None


def test_what_a_stranger_adds_is_what_its_blocks_add(stranger: Callable[[str], tuple[Network, Checkpoint]]) -> None:
    """Where norms stand after attention and MLP, their outputs are found, and not the modules of the names."""
    network, _ = stranger("exaone4")
    assert network.locate("attention_output", 1).path == "model.layers.1.post_attention_layernorm"
    assert network.locate("mlp_output", 1).path == "model.layers.1.post_feedforward_layernorm"
    network, _ = stranger("phi3")
    assert network.locate("attention_output", 1).path == "model.layers.1.self_attn"
    assert network.locate("block_mid", 1).path == "model.layers.1.post_attention_layernorm.mid_tap"


class CopyingNorm(nn.Module):
    """A norm that is given a copy."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.clone())


@pytest.fixture
def spoiled(family_folder: Callable[[str, int], Path]) -> tuple[Network, Checkpoint]:
    folder = family_folder("llama", 16)
    return load(folder, "fp32", None, "cpu"), resolve(str(folder)).untested()


def test_a_spoiled_sum_refuses_what_is_added(spoiled: tuple[Network, Checkpoint]) -> None:
    """A block that adds something of its own beside what attention and MLP hand out."""
    network, checkpoint = spoiled
    network.model.model.layers[1].register_forward_hook(lambda _, args, out: out + 0.05)
    verdict = examine(network, checkpoint)
    assert lacking(verdict, Proof.REFUSED) == {"attention_output", "mlp_output"}
    assert "is not block_output in block 1: off by" in verdict.of("mlp_output").reason


def test_a_middle_that_the_stream_does_not_go_on_with(spoiled: tuple[Network, Checkpoint]) -> None:
    """A copy reaches the norm: what is written there stays there."""
    network, checkpoint = spoiled
    for block in network.model.model.layers:
        block.post_attention_layernorm = CopyingNorm(block.post_attention_layernorm)
    network = replace(network, family=replace(network.family, middle="post_attention_layernorm.inner"))
    taps.attach(network.model, network.family)
    verdict = examine(network, checkpoint)
    assert lacking(verdict, Proof.REFUSED) == {"block_mid"}
    assert "does not go on with what is written" in verdict.of("block_mid").reason


def test_heads_that_do_not_hand_on_values(spoiled: tuple[Network, Checkpoint]) -> None:
    network, checkpoint = spoiled
    wrong = replace(checkpoint, config=replace(checkpoint.config, kv_heads=2, head_dim=4))
    verdict = examine(network, wrong)
    assert lacking(verdict, Proof.REFUSED) >= {"attention_query", "attention_z", "attention_premix"}
    assert "where the config makes it" in verdict.of("attention_z").reason


def test_heads_of_another_count_where_none_share_a_value(
    family_network: Callable[..., Network], family_folder: Callable[[str, int], Path]
) -> None:
    checkpoint = resolve(str(family_folder("gpt2", 64))).untested()
    for heads in (2, 8):
        wrong = replace(checkpoint.config, heads=heads, kv_heads=heads, head_dim=64 // heads)
        verdict = examine(family_network("gpt2", 64), replace(checkpoint, config=wrong))
        assert lacking(verdict, Proof.UNPROVEN) == VALUES | PATTERNS


def test_neurons_of_another_count(spoiled: tuple[Network, Checkpoint]) -> None:
    network, checkpoint = spoiled
    verdict = examine(network, replace(checkpoint, config=replace(checkpoint.config, neurons=31)))
    assert lacking(verdict, Proof.REFUSED) == INSIDE_MLP
    assert verdict.of("mlp_activation").reason == "it is 32 wide in block 0, where the config makes it 31"


def test_logits_that_the_head_does_not_make(spoiled: tuple[Network, Checkpoint]) -> None:
    network, checkpoint = spoiled
    network.model.register_forward_hook(lambda _, args, out: out.__setitem__("logits", out.logits * 2))
    verdict = examine(network, checkpoint)
    assert lacking(verdict, Proof.REFUSED) == {"views"}
    blind = replace(checkpoint, verdict=verdict).blind()
    assert blind is not None
    assert "do not make the model's logits" in blind


def test_queries_that_are_not_those_of_the_heads(spoiled: tuple[Network, Checkpoint]) -> None:
    """A temperature of its own leaves queries and keys unproven, of which a known family's row still stands."""
    network, checkpoint = spoiled
    for block in network.model.model.layers:
        block.self_attn.scaling = 0.9
        block.self_attn.register_forward_pre_hook(lambda module, _: setattr(module, "scaling", 0.123))
        block.self_attn.register_forward_hook(lambda module, _, out: setattr(module, "scaling", 0.9))
    verdict = examine(network, checkpoint)
    assert lacking(verdict, Proof.UNPROVEN) == {"attention_query", "attention_key"} | PATTERNS
    assert "attention_query" in replace(checkpoint, verdict=verdict).components()


def test_a_model_that_does_not_run_is_a_verdict(spoiled: tuple[Network, Checkpoint]) -> None:
    network, checkpoint = spoiled

    def fails(_: nn.Module, args: object) -> None:
        raise RuntimeError("no such kernel")

    network.model.register_forward_pre_hook(fails)
    verdict = examine(network, checkpoint)
    assert verdict.findings == {}
    assert "the self-test could not be run on it" in verdict.whole


def test_a_stranger_whose_rows_depend_on_their_batch(stranger: Callable[[str], tuple[Network, Checkpoint]]) -> None:
    network, checkpoint = stranger("phi3")
    network.model.register_forward_hook(
        lambda _, args, out: out.__setitem__("logits", out.logits + out.logits.shape[0] - 1)
    )
    verdict = examine(network, checkpoint)
    assert verdict.whole == "a row's logits in a padded batch are not those of the row alone"
    assert replace(checkpoint, verdict=verdict).components() == ()


def test_a_stranger_that_cannot_go_on_from_a_cache(stranger: Callable[[str], tuple[Network, Checkpoint]]) -> None:
    network, checkpoint = stranger("stablelm")
    network.model.register_forward_hook(
        lambda _, args, kwargs, out: (
            out.__setitem__("logits", out.logits * 2) if kwargs["input_ids"].shape[1] == 1 else None
        ),
        with_kwargs=True,
    )
    assert (
        examine(network, checkpoint).whole == "its logits after a step from the cache are not those of the whole text"
    )


def test_a_stranger_without_attention(tmp_path: Path) -> None:
    from transformers import RwkvConfig
    from transformers.models.rwkv.modeling_rwkv import RwkvForCausalLM

    model = RwkvForCausalLM(RwkvConfig(vocab_size=320, hidden_size=16, num_hidden_layers=2, context_length=32))
    model.save_pretrained(tmp_path)
    families.write_tokenizer(tmp_path, "llama")
    with pytest.raises(ModelUnavailable, match="does not say 'num_attention_heads'"):
        resolve(str(tmp_path))


def test_what_is_no_language_model(tmp_path: Path) -> None:
    folder = strangers.write_folder(tmp_path / "phi3", "phi3", 16)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "vit"}))
    with pytest.raises(ModelUnavailable, match="names the model type 'vit'"):
        load(folder, "fp32", None, "cpu")


def test_nothing_is_changed_by_a_self_test(spoiled: tuple[Network, Checkpoint]) -> None:
    network, checkpoint = spoiled
    ids = torch.tensor([[5, 9, 20]])
    with torch.no_grad():
        before = network.model(input_ids=ids).logits
        examine(network, checkpoint)
        assert torch.equal(network.model(input_ids=ids).logits, before)
    assert all(not module._forward_hooks and not module._forward_pre_hooks for module in network.model.modules())


def test_a_state_that_does_not_follow_the_recurrence_is_refused(
    family_folder: Callable[[str, int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = family_folder("qwen3_5_text", 64)
    delta = mixers.RECURRENCES["Gated DeltaNet"]
    monkeypatch.setitem(mixers.RECURRENCES, "Gated DeltaNet", replace(delta, delta=False))
    verdict = examine(load(folder, "fp32", None, "cpu"), resolve(str(folder)))
    assert lacking(verdict, Proof.REFUSED) == RECURRED | {"linear_attention_query", "linear_attention_z"}
