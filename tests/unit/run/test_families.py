"""Families that arrange their blocks otherwise, under every schedule; routers of mixtures; the distribution to come."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests import families
from tests.building import PROMPTS, generated, intervention, observing, read, rows, write, write_table
from tests.desk import Desk
from tests.unit.run.test_inside import WAYS, patched, placed, same
from torch import Tensor

MODELS = ("gemma3_text", "olmo2", "mixtral", "qwen2_moe", "bloom", "opt")
PLACES = ("query", "key", "mid")
ROUTING = {"router": "router_logits", "weights": "expert_weights", "indices": "expert_indices"}


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("families"), rows([*PROMPTS, "If today is Thursday, then I"]))


@pytest.fixture
def desk(request: pytest.FixtureRequest, root: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world(request.param, 16).over(root)


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("desk", MODELS, indirect=True)
def test_every_schedule_and_engine_give_the_same(name: str, desk: Desk) -> None:
    asked = patched(name)
    plainly = desk.run(asked, "hooks", mode="naive")
    for engine, mode in WAYS:
        same(plainly, desk.run(asked, engine, mode=mode), exactly=mode != "fast")


def routing(layer: int, pos: object, decode: int = 0) -> dict:
    reads = {name: read(name, pos) for name in ROUTING}
    asked = observing(intervention(reads, decode=decode), outputs={name.upper(): name for name in ROUTING})
    return placed(asked, **{name: {"component": component, "layers": layer} for name, component in ROUTING.items()})


def entering_router(desk: Desk, ids: list[int], layer: int) -> Tensor:
    """What enters the MLP of a block at the last of `ids`: [d]."""
    seen: list[Tensor] = []
    handle = desk.network.model.model.layers[layer].mlp.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    try:
        with torch.no_grad():
            desk.network.model(input_ids=torch.tensor([ids]), use_cache=False)
    finally:
        handle.remove()
    return seen[0][0, -1]


@pytest.mark.parametrize("decode", [0, 3])
@pytest.mark.parametrize("desk", ["mixtral", "qwen2_moe"], indirect=True)
def test_what_a_router_says_and_chooses(desk: Desk, decode: int) -> None:
    """By hand from the router's weights: two experts of four, whose weights Mixtral makes one together."""
    pos = generated(index=2) if decode else -1
    seen = desk.one(routing(1, pos, decode))
    said = desk.one(observing(intervention({"x": read("head")}, decode=2), saves=["original.generated"], outputs={}))
    ids = said.observed.bundles[0].tensors["original.generated"] if decode else None
    gate = desk.network.model.model.layers[1].mlp.gate
    for row, text in enumerate([*PROMPTS, "If today is Thursday, then I"]):
        tokens = list(desk.checkpoint.encode(text).ids) + (ids[row].tolist() if ids is not None else [])
        logits = gate.weight @ entering_router(desk, tokens, 1)
        order = logits.sort(descending=True).indices[:2]
        weights = logits.softmax(-1)[order]
        if desk.checkpoint.model_type == "mixtral":
            weights = weights / weights.sum()
        torch.testing.assert_close(seen.tensor("ROUTER")[row], logits, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(seen.tensor("WEIGHTS")[row], weights, rtol=1e-4, atol=1e-5)
        assert seen.tensor("INDICES")[row].tolist() == order.tolist()


@pytest.mark.parametrize(
    ("desk", "component", "layer", "reason"),
    [
        ("llama", "router_logits", 0, "its MLPs are no mixtures of experts"),
        ("qwen2_moe", "expert_indices", 0, "the MLP of block 0 is dense; mixtures of experts are 1"),
        ("qwen2_moe", "mlp_activation", 1, "the neurons of a mixture of experts belong to its experts"),
        ("mixtral", "mlp_neuron_output", 0, "the neurons of a mixture of experts belong to its experts"),
        ("olmo2", "attention_input_norm", 0, "what enters attention is block_input itself"),
        ("olmo2", "mlp_input_norm", 0, "what enters the MLP is block_mid itself"),
        ("opt_post", "attention_output", 0, "its blocks norm the residual stream itself"),
        ("opt_post", "block_mid", 0, "its blocks norm the residual stream itself"),
        ("opt_post", "ln_final", None, "its config leaves the final norm out"),
    ],
    indirect=["desk"],
)
def test_what_a_family_has_not(desk: Desk, component: str, layer: int | None, reason: str) -> None:
    asked = placed(
        observing(intervention({"x": read("here")}), outputs={"X": "x"}),
        here={"component": component, **({} if layer is None else {"layers": layer})},
    )
    (problem,) = desk.problems(asked)
    assert problem.path in ("sites.here.component", "sites.here.layers")
    assert component in problem.message
    assert reason in problem.message


@pytest.mark.parametrize("desk", ["qwen2_moe"], indirect=True)
def test_neurons_of_a_dense_block_between_mixtures(desk: Desk) -> None:
    asked = placed(
        observing(intervention({"x": read("here")}), outputs={"X": "x"}),
        here={"component": "mlp_neuron_output", "layers": 0},
    )
    assert desk.one(asked).tensor("X").shape == (4, 32)


@pytest.mark.parametrize("engine", ["hooks", "traced"])
@pytest.mark.parametrize("desk", ["bloom", "llama"], indirect=True)
def test_queries_beside_keys_that_are_written_for_one_forward(engine: str, desk: Desk) -> None:
    """Keys and values go into the cache and come out of it before a query is there to see them."""
    names = ("keys", "queries", "heads")
    reads = {f"{name}_{model}": read(name, -1, model) for name in names for model in ("original", "m")}
    writes = {"w": {**write("keys", {"last": 2}, "add_scaled", 1.0, scale=3.0), "reach": "forward"}}
    asked = placed(
        observing(intervention(reads, writes), outputs={name.upper(): name for name in reads}),
        keys={"component": "attention_key", "layers": 1},
        queries={"component": "attention_query", "layers": 1},
        heads={"component": "attention_z", "layers": 1},
    )
    seen = desk.one(asked, engine)
    torch.testing.assert_close(seen.tensor("KEYS_M"), seen.tensor("KEYS_ORIGINAL") + 3.0)
    torch.testing.assert_close(seen.tensor("QUERIES_M"), seen.tensor("QUERIES_ORIGINAL"))
    assert (seen.tensor("HEADS_M") - seen.tensor("HEADS_ORIGINAL")).abs().max() > 1e-3


@pytest.mark.parametrize("desk", ["opt_post"], indirect=True)
def test_embeddings_are_as_wide_as_the_stream_where_tables_are_narrower(desk: Desk) -> None:
    seen = desk.one(observing(intervention({"x": read("embeddings")}), outputs={"X": "x"}))
    decoder = desk.network.model.model.decoder
    last = [desk.checkpoint.encode(text).ids[-1] for text in [*PROMPTS, "If today is Thursday, then I"]]
    wanted = decoder.embed_tokens.weight[last] @ decoder.project_in.weight.T
    assert decoder.embed_tokens.weight.shape[1] == 8
    torch.testing.assert_close(seen.tensor("X"), wanted)


@pytest.mark.parametrize("desk", ["llama", "gemma2", "opt_post"], indirect=True)
def test_the_distribution_of_the_next_token(desk: Desk) -> None:
    """It is the softmax of the logits, at the prompt's end and at steps, after a write, in tables and bundles."""
    places = {"p": -1, "p2": generated(index=2), "l": -1, "l2": generated(index=2)}
    reads = {name: read("next" if name[0] == "p" else "head", pos, "m") for name, pos in places.items()}
    metrics = {f"{kind}_{name}": {"kind": kind, "of": name} for kind in ("entropy", "top_k") for name in places} | {
        f"js{step}": {"kind": "js", "of": f"p{step}", "against": f"l{step}"} for step in ("", "2")
    }
    body = intervention(
        reads,
        {"w": write("in1", -1, "add_scaled", 2.0)},
        {"m": {"input": "base", "writes": ["w"]}},
        metrics,
        decode=3,
    )
    asked = observing(body, outputs={name.upper(): name for name in places})
    seen = desk.one(placed(asked, next={"component": "next_token_probs"}), mode="fast")
    for step in ("", "2"):
        probs = seen.tensor(f"P{step}")
        torch.testing.assert_close(probs, seen.tensor(f"L{step}").softmax(-1))
        assert probs.shape == (4, desk.checkpoint.vocab)
        assert seen.values(f"entropy_p{step}") == pytest.approx(seen.values(f"entropy_l{step}"), rel=1e-4)
        assert seen.values(f"js{step}") == pytest.approx([0.0] * 4, abs=1e-5)
        for one, other in zip(seen.values(f"top_k_p{step}"), seen.values(f"top_k_l{step}"), strict=True):
            assert [entry[0] for entry in one] == [entry[0] for entry in other]
            assert [entry[2] for entry in one] == pytest.approx([entry[2] for entry in other], rel=1e-4)


def test_every_family_here_is_built(family_folder: Callable[[str, int], Path]) -> None:
    assert {*MODELS} <= {*families.MORE}
