"""What is inside a block, read and written: every family, component and step, against attention written out by hand."""

from collections.abc import Callable
from functools import cache

import pytest
import torch
from tests import families, plain
from tests.cached import Decoded, decode, positions
from tests.stock import LAYER, ROUTING, Row, Stock
from torch import Tensor

from causalab_mini.engine.caches import fresh
from causalab_mini.engine.contract import Inputs, Visit
from causalab_mini.engine.hooks import Hooks
from causalab_mini.engine.modules import Network, load
from causalab_mini.engine.traced import Traced
from causalab_mini.vocabulary.components import COMPONENTS

WIDTH, STEPS, EOS = 64, 4, [1]
WIDTHS = {0: 16, 1: 64, 3: 512}
"""How wide the models are that are written in, by step."""
VARIANTS = (
    "llama",
    "qwen2",
    "qwen3",
    "mistral",
    "mistral_sliding",
    "gemma2",
    "gpt2",
    "gpt_neox",
    "gpt_neox_sequential",
    "gemma3_text",
    "olmo2",
    "mixtral",
    "qwen2_moe",
    "bloom",
    "opt",
    "opt_post",
)
NAMES = (
    "attention_input_norm",
    "attention_query",
    "attention_key",
    "attention_value",
    "attention_z",
    "attention_premix",
    "attention_output",
    "block_mid",
    "mlp_input_norm",
    "mlp_input",
    "mlp_activation",
    "mlp_neuron_output",
    "mlp_output",
)
SAME = {"attention_premix": "attention_z"}
ALIKE = ("qwen2", "mistral")
"""Blocks like Llama's, but for biases: read, and not written again."""
OPT_POST = ("attention_input_norm", "attention_output", "block_mid", "mlp_input_norm", "mlp_output")
INSIDE_MLP = ("mlp_activation", "mlp_neuron_output")
LACKING = {
    "gpt_neox": ("block_mid",),
    "olmo2": ("attention_input_norm", "mlp_input_norm"),
    "mixtral": INSIDE_MLP,
    "qwen2_moe": INSIDE_MLP,
    "opt_post": OPT_POST,
}
TRACED = ("llama", "gpt2", "gpt_neox", "bloom", "opt")
"""Where the other engine writes too: one family of each arrangement of modules."""
CASES = [(v, name) for v in VARIANTS for name in NAMES if name not in LACKING.get(v, ())]
MIXTURES = ("mixtral", "qwen2_moe")
"""An expert takes the tokens of all rows together, so that one row's choice moves the last bit of another."""
ROUTED = [(v, name) for v in MIXTURES for name in ROUTING]
ATTENTION = ("attention_key", "attention_value", "attention_query", "attention_z")
BUILDS = [("llama", 512), ("qwen3", 64), ("mistral_sliding", 64), ("gemma2", 64), ("gpt2", 512), ("gpt_neox", 64)]
BUILDS += [("olmo2", 64), ("bloom", 512), ("opt", 16)]

Loaded = Callable[..., Network]


@cache
def stock(variant: str, width: int = WIDTH) -> Stock:
    return Stock(variant, width)


CLEAN: dict[tuple[str, int], Decoded] = {}


def untouched(variant: str, width: int, network: Network, ids: Tensor, mask: Tensor) -> Decoded:
    """The decode that nothing is looked at or written in, once for every family and width."""
    if (variant, width) not in CLEAN:
        CLEAN[variant, width] = decode(Hooks(network), network, ids, mask, STEPS, held=EOS)
    return CLEAN[variant, width]


@pytest.fixture
def rows(variant: str, family_folder: Callable[[str, int], object]) -> list[list[int]]:
    # Every width of a family has one tokenizer.
    return [families.encode(family_folder(variant, WIDTH), text) for text in families.PROMPTS]


def visits(network: Network, names: list[str], edit: tuple[str, Callable[[Tensor], Tensor]] | None) -> list[Visit]:
    """One visit for every value of the layer, in forward order, that keeps the last column; `edit` at one of them."""
    found: dict[tuple[str, str, int], Visit] = {}
    for component in sorted((COMPONENTS.get(name) for name in names), key=lambda component: component.rank):
        spot = network.locate(component.name, LAYER)
        before = found.get((spot.path, spot.side, spot.item), Visit(spot.path, spot.side, item=spot.item))
        change = edit[1] if edit is not None and edit[0] == component.name else before.edit
        keep = {**before.keep, component.name: lambda t: t[:, -1]}
        found[spot.path, spot.side, spot.item] = Visit(spot.path, spot.side, change, keep, spot.item)
    return list(found.values())


def flip(vector: Tensor) -> Tensor:
    return vector.flip(-1)


def assert_is_row_alone(decoded: Decoded, lane: int, alone: list[tuple[Tensor, Row]]) -> None:
    for step, (logits, seen) in enumerate(alone):
        close(decoded.logits[step][lane], logits)
        for name, value in decoded.kept[step].items():
            close(value[lane], seen.seen[SAME.get(name, name)][-1])


def close(found: Tensor, wanted: Tensor) -> None:
    assert found.shape == wanted.shape
    assert (found - wanted).abs().max() <= 1e-4 * wanted.abs().max().clamp(min=1)


@pytest.mark.parametrize("width", [16, 64, 512])
@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_read_is_what_the_row_alone_has(
    variant: str, width: int, rows: list[list[int]], family_network: Loaded
) -> None:
    network = family_network(variant, width)
    names = [name for v, name in (*CASES, *ROUTED) if v == variant]
    for engine in (Hooks, Traced):
        ids, mask = plain.pad(rows)
        found = decode(engine(network), network, ids, mask, STEPS, lambda _: visits(network, names, None), EOS)
        for lane, row in enumerate(rows):
            assert_is_row_alone(found, lane, stock(variant, width).decode(row, STEPS, EOS, Row()))


@pytest.mark.parametrize("step", [0, 1, 3])
@pytest.mark.parametrize(("variant", "name"), [case for case in CASES if case[0] not in ALIKE])
def test_a_write_is_what_the_row_alone_does(
    variant: str, name: str, step: int, rows: list[list[int]], family_network: Loaded
) -> None:
    width, lane = WIDTHS[step], 0
    network = family_network(variant, width)
    names = [other for v, other in CASES if v == variant]
    back = 2 if step == 0 else 1

    def edit(t: Tensor) -> Tensor:
        new = t.clone()
        new[lane, -back] = flip(t[lane, -back])
        return new

    # Where one value has two names, each is a name of what was written.
    token = len(rows[lane]) - back + step
    alone = stock(variant, width).decode(rows[lane], STEPS, EOS, Row(SAME.get(name, name), token, flip))
    ids, mask = plain.pad(rows)
    clean = untouched(variant, width, network, ids, mask)
    for engine in (Hooks, Traced) if variant in TRACED else (Hooks,):
        written = decode(
            engine(network),
            network,
            ids,
            mask,
            STEPS,
            lambda now: visits(network, names, (name, edit) if now == step else None),
            EOS,
        )
        for now, (logits, _) in enumerate(alone):
            close(written.logits[now][lane], logits)
        moved = max(
            (written.logits[now][lane] - clean.logits[now][lane]).abs().max().item() for now in range(step, STEPS)
        )
        assert moved > 1e-4
        for other in range(1, len(rows)):
            for now in range(STEPS):
                if variant in MIXTURES:
                    close(written.logits[now][other], clean.logits[now][other])
                else:
                    assert torch.equal(written.logits[now][other], clean.logits[now][other])


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize(("variant", "width"), BUILDS)
def test_looking_inside_attention_changes_no_bit(
    variant: str, width: int, attention: str, dtype: str, family_folder: Callable[..., object]
) -> None:
    if variant in ("gemma2", "bloom") and attention == "sdpa":
        pytest.skip("this family has no sdpa")
    folder = family_folder(variant, width)
    network = load(folder, dtype, attention, "cpu")
    ids, mask = plain.pad([families.encode(folder, text) for text in families.PROMPTS])
    looks = [*ATTENTION, *(["block_mid"] if "block_mid" not in LACKING.get(variant, ()) else [])]
    plainly = decode(Hooks(network), network, ids, mask, STEPS, held=EOS)
    for engine in (Hooks, Traced):
        seen = decode(engine(network), network, ids, mask, STEPS, lambda _: visits(network, looks, None), EOS)
        assert all(torch.equal(one, other) for one, other in zip(seen.logits, plainly.logits, strict=True))


@pytest.mark.parametrize("part", ["attention_key", "attention_value"])
@pytest.mark.parametrize("variant", ["llama", "qwen2", "qwen3", "mistral", "gemma2"])
def test_a_key_value_head_moves_the_query_heads_that_share_it(
    variant: str, part: str, rows: list[list[int]], family_network: Loaded
) -> None:
    network = family_network(variant, WIDTH)
    heads, shared = families.heads(WIDTH), families.heads(WIDTH) // 2
    ids, mask = plain.pad(rows)
    clean = decode(Hooks(network), network, ids, mask, 1, lambda _: visits(network, ["attention_z"], None))
    z = clean.kept[0]["attention_z"].unflatten(-1, (heads, -1))
    for head in range(shared):

        def zero(t: Tensor, head: int = head) -> Tensor:
            by_head = t.unflatten(-1, (shared, -1)).clone()
            by_head[:, -2, head] = 0
            return by_head.flatten(-2)

        written = decode(
            Hooks(network),
            network,
            ids,
            mask,
            1,
            lambda _, zero=zero: visits(network, [part, "attention_z"], (part, zero)),
        )
        moved = written.kept[0]["attention_z"].unflatten(-1, (heads, -1))
        group = heads // shared
        changed = [not torch.equal(moved[:, each], z[:, each]) for each in range(heads)]
        assert changed == [each // group == head for each in range(heads)]


@pytest.mark.parametrize("part", ["attention_key", "attention_value"])
def test_a_written_token_keeps_its_keys_for_later_queries(part: str, family_network: Loaded) -> None:
    """One write at the prompt, of which the later steps are told by the cache alone."""
    variant = "llama"
    network = family_network(variant, WIDTH)
    row = [[5, 9, 20, 31, 7]]
    ids, mask = plain.pad(row)

    def edit(t: Tensor) -> Tensor:
        new = t.clone()
        new[0, 1] = flip(t[0, 1])
        return new

    written = decode(
        Hooks(network),
        network,
        ids,
        mask,
        STEPS,
        lambda now: visits(network, [part], (part, edit) if now == 0 else None),
        EOS,
    )
    alone = stock(variant).decode(row[0], STEPS, EOS, Row(part, 1, flip))
    for step, (logits, _) in enumerate(alone):
        close(written.logits[step][0], logits)


def test_keys_are_seen_on_their_way_into_a_cache(family_network: Loaded) -> None:
    from causalab_mini.errors import EngineFailure

    network = family_network("llama", 16)
    ids, mask = plain.pad([[5, 9, 20]])
    inputs = Inputs(ids, mask, positions(mask, 3), torch.tensor([2]))
    for engine in (Hooks(network), Traced(network)):
        with pytest.raises(EngineFailure, match="on their way into a cache, and this call has none"):
            engine.forward(inputs, visits(network, ["attention_key"], None))


def test_taps_are_closed_after_a_call_that_failed(family_network: Loaded) -> None:
    network = family_network("llama", 16)
    ids, mask = plain.pad([[5, 9, 20]])
    cache = fresh(network)
    own = network.model.config._attn_implementation

    def spoil(t: Tensor) -> Tensor:
        raise KeyError("spoiled")

    inputs = Inputs(ids, mask, positions(mask, 3), torch.tensor([2]), cache)
    looks = ["attention_key", "attention_query", "block_mid"]
    with pytest.raises(Exception, match="spoiled"):
        Hooks(network).forward(inputs, visits(network, looks, ("block_mid", spoil)))
    assert network.model.config._attn_implementation == own
    assert all("update" not in vars(layer) for layer in cache.layers)
    for layer in range(network.depth):
        for name in looks:
            tap = network.model.get_submodule(network.locate(name, layer).path)
            assert tap.open is False
        norm = network.model.get_submodule(network.locate("block_mid", layer).path.rpartition(".")[0])
        assert not norm._forward_pre_hooks
