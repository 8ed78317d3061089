"""Both engines against each other, against the row alone in plain torch, and against `model.generate`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
import torch
from tests import families, plain
from tests.cached import Decoded, decode, positions
from torch import Tensor

from causalab_mini.engine.contract import Engine, Inputs, Visit
from causalab_mini.engine.hooks import Hooks
from causalab_mini.engine.modules import Network, Spot
from causalab_mini.engine.traced import Traced

COMPONENTS = ("embeddings", "block_input", "attention_output", "mlp_output", "block_output", "ln_final", "logits")
STREAM = ("embeddings", "block_input", "block_output", "ln_final", "logits")
"""What is not inside a block; what is, `test_components` holds."""
LAYER = 1
STEPS = 4
EOS = [1]
MODELS = [(model, width) for model in families.FAMILIES for width in families.WIDTHS]
MORE = [(model, 64) for model in (*families.MORE, *families.VARIANTS)]
ADDING = [case for case in MORE if case[0] != "opt_post"]
"""Where a block's output is its input and what is added to it."""
WINDOWED = [("mistral_sliding", 64), ("gemma2", 64), ("gemma3_text", 64)]
"""Their caches here keep what the window has passed, masked: sums of other length, equal but for the last bit."""

Folder = Callable[[str, int], object]
Loaded = Callable[..., Network]


@dataclass(frozen=True)
class Batch:
    """Prompts of unequal length, alone and left-padded."""

    rows: list[list[int]]
    ids: Tensor
    mask: Tensor


@pytest.fixture
def batch(model: str, width: int, family_folder: Callable[[str, int], object]) -> Batch:
    rows = [families.encode(family_folder(model, width), text) for text in families.PROMPTS]
    assert len({len(row) for row in rows}) == len(rows)
    return Batch(rows, *plain.pad(rows))


def spot(network: Network, component: str) -> Spot:
    return network.locate(component, LAYER if component.startswith(("block", "attention", "mlp")) else None)


def looks(network: Network, row: Sequence[int]) -> list[plain.Look]:
    """Every component at the column each step sees, by the name `component/step`."""
    places = [(component, spot(network, component)) for component in COMPONENTS]
    return [
        plain.Look(f"{component}/{step}", place.path, place.side, len(row) - 1 + step)
        for component, place in places
        for step in range(STEPS)
    ]


def reading(network: Network) -> Callable[[int], list[Visit]]:
    """Visits that keep the last column of every component."""
    places = [(component, spot(network, component)) for component in COMPONENTS]
    visits = [Visit(place.path, place.side, None, {component: lambda t: t[:, -1]}) for component, place in places]
    return lambda step: visits


def flip(vector: Tensor) -> Tensor:
    return vector.flip(-1)


def writing(
    visits: Callable[[int], Sequence[Visit]], place: Spot, step: int, lane: int, column: int
) -> Callable[[int], list[Visit]]:
    """The visits, an edit of one cell added at one step."""

    def edit(t: Tensor) -> Tensor:
        new = t.clone()
        new[lane, column] = flip(t[lane, column])
        return new

    def at(now: int) -> list[Visit]:
        return [
            Visit(v.module, v.side, edit, v.keep)
            if now == step and (v.module, v.side) == (place.path, place.side)
            else v
            for v in visits(now)
        ]

    return at


def assert_equal(first: Decoded, second: Decoded) -> None:
    assert torch.equal(first.ids, second.ids)
    for step in range(STEPS):
        assert torch.equal(first.logits[step], second.logits[step])
        assert first.kept[step].keys() == second.kept[step].keys()
        for name, value in first.kept[step].items():
            assert torch.equal(value, second.kept[step][name]), (name, step)


def assert_close(found: Tensor, wanted: Tensor) -> None:
    assert found.shape == wanted.shape
    assert (found - wanted).abs().max() <= 1e-4 * wanted.abs().max().clamp(min=1)


def assert_is_row_alone(decoded: Decoded, lane: int, alone: plain.Rollout) -> None:
    assert decoded.ids[lane].tolist() == alone.ids
    for step in range(STEPS):
        assert_close(decoded.logits[step][lane], alone.logits[step])
        for component in COMPONENTS:
            assert_close(decoded.kept[step][component][lane], alone.values[f"{component}/{step}"])


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize(("model", "width"), MODELS + ADDING)
def test_traced_is_hooks_to_the_bit(model: str, width: int, dtype: str, batch: Batch, family_network: Loaded) -> None:
    network = family_network(model, width, dtype)
    for step in (0, 2):
        visits = reading(network)
        for component in ("embeddings", "block_input", "attention_output", "logits"):
            visits = writing(visits, spot(network, component), step, 1, -1)
        runs = [
            decode(engine, network, batch.ids, batch.mask, STEPS, visits, EOS)
            for engine in (Hooks(network), Traced(network))
        ]
        assert_equal(*runs)


@pytest.mark.parametrize("engine", [Hooks, Traced])
@pytest.mark.parametrize(("model", "width"), MODELS + ADDING)
def test_a_lane_of_a_padded_batch_is_its_row_alone(
    model: str, width: int, batch: Batch, family_network: Loaded, engine: type[Engine]
) -> None:
    network = family_network(model, width)
    decoded = decode(engine(network), network, batch.ids, batch.mask, STEPS, reading(network), EOS)
    for lane, row in enumerate(batch.rows):
        alone = plain.run(network.model, row, (), looks(network, row), STEPS, EOS)
        assert_is_row_alone(decoded, lane, alone)


@pytest.mark.parametrize("engine", [Hooks, Traced])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize(("model", "width"), [each for each in MODELS + MORE if each not in WINDOWED])
def test_the_loop_is_generate_to_the_bit(
    model: str, width: int, dtype: str, batch: Batch, family_network: Loaded, engine: type[Engine]
) -> None:
    network = family_network(model, width, dtype)
    ids, logits = plain.generate(network.model, batch.ids, batch.mask, 8, EOS)
    decoded = decode(engine(network), network, batch.ids, batch.mask, 8, held=EOS)
    assert torch.equal(decoded.ids, ids)
    for step in range(8):
        assert torch.equal(decoded.logits[step].float(), logits[step].float())


@pytest.mark.parametrize(("model", "width"), WINDOWED)
def test_the_loop_is_generate_within_a_window(model: str, width: int, batch: Batch, family_network: Loaded) -> None:
    network = family_network(model, width)
    ids, logits = plain.generate(network.model, batch.ids, batch.mask, 8, EOS)
    decoded = decode(Hooks(network), network, batch.ids, batch.mask, 8, held=EOS)
    assert torch.equal(decoded.ids, ids)
    for step in range(8):
        assert_close(decoded.logits[step], logits[step].float())


@pytest.mark.parametrize("step", [0, 1, 3])
@pytest.mark.parametrize(
    ("model", "width", "component"),
    [(model, 64, component) for model in families.FAMILIES for component in COMPONENTS]
    + [(model, 16, component) for model in families.MORE for component in STREAM],
)
def test_a_write_is_what_a_plain_hook_does(
    model: str, width: int, component: str, step: int, batch: Batch, family_network: Loaded
) -> None:
    network = family_network(model, width)
    place, lane = spot(network, component), 0
    row = batch.rows[lane]
    # In the prompt at its last token but one; of the logits and the final norm only the last token's matter.
    back = 2 if step == 0 and component not in ("logits", "ln_final") else 1
    clean = decode(Hooks(network), network, batch.ids, batch.mask, STEPS, reading(network), EOS)
    edit = plain.Edit(place.path, place.side, len(row) - back + step, flip)
    alone = plain.run(network.model, row, [edit], looks(network, row), STEPS, EOS)
    for engine in (Hooks, Traced) if model in families.FAMILIES else (Hooks,):
        visits = writing(reading(network), place, step, lane, -back)
        written = decode(engine(network), network, batch.ids, batch.mask, STEPS, visits, EOS)
        assert_is_row_alone(written, lane, alone)
        assert (written.logits[step][lane] - clean.logits[step][lane]).abs().max() > 1e-3
        for other in range(1, len(batch.rows)):
            assert torch.equal(written.ids[other], clean.ids[other])
            for now in range(STEPS):
                assert_close(written.logits[now][other], clean.logits[now][other])
                # The experts of a mixture take the tokens of all lanes together.
                mixture = model in ("mixtral", "qwen2_moe")
                assert mixture or torch.equal(written.logits[now][other], clean.logits[now][other])
        for before in range(step):
            assert torch.equal(written.logits[before], clean.logits[before])


@pytest.mark.parametrize("component", ["block_output", "attention_output", "logits"])
@pytest.mark.parametrize(("model", "width"), MODELS)
def test_writes_at_every_step_are_one_pass_over_the_finished_text(
    model: str, width: int, component: str, batch: Batch, family_network: Loaded
) -> None:
    network = family_network(model, width)
    place = spot(network, component)
    visits = reading(network)
    for step in range(STEPS):
        visits = writing(visits, place, step, 1, -1)
    written = decode(Traced(network), network, batch.ids, batch.mask, STEPS, visits, EOS)
    row = batch.rows[1]
    last = len(row) - 1
    edits = [plain.Edit(place.path, place.side, last + step, flip) for step in range(STEPS)]
    finished, _ = plain.forward(network.model, [*row, *written.ids[1].tolist()[:-1]], edits)
    for step in range(STEPS):
        assert_close(written.logits[step][1], finished[last + step])
    assert_is_row_alone(written, 1, plain.run(network.model, row, edits, looks(network, row), STEPS, EOS))


@pytest.mark.parametrize("engine", [Hooks, Traced])
@pytest.mark.parametrize(("model", "width"), MODELS)
def test_the_head_where_it_is_asked_for(
    model: str, width: int, batch: Batch, family_network: Loaded, engine: type[Engine]
) -> None:
    network = family_network(model, width)
    columns = batch.ids.shape[1]
    head = torch.tensor([columns - 4, columns - 3, columns - 1])
    inputs = Inputs(batch.ids, batch.mask, positions(batch.mask, columns), head)
    logits = engine(network).forward(inputs, [Visit("", "output", None, {"all": lambda t: t})])["all"]
    assert logits.shape == (len(batch.rows), 3, families.VOCABULARY)
    for lane, row in enumerate(batch.rows):
        alone, _ = plain.forward(network.model, row)
        assert_close(logits[lane], alone[[-4, -3, -1]])


@pytest.mark.parametrize(("model", "width"), MODELS + MORE)
def test_unembed_of_the_last_block_is_the_logits(model: str, width: int, batch: Batch, family_network: Loaded) -> None:
    network = family_network(model, width)
    decoded = decode(Hooks(network), network, batch.ids, batch.mask, 1, lambda step: [_last_block(network)])
    assert_close(network.unembed(decoded.kept[0]["last"]), decoded.logits[0])


def _last_block(network: Network) -> Visit:
    place = network.locate("block_output", network.depth - 1)
    return Visit(place.path, place.side, None, {"last": lambda t: t[:, -1]})


@pytest.mark.parametrize(("model", "width"), MODELS + ADDING)
def test_what_attention_and_mlp_add_is_the_difference_over_the_block(
    model: str, width: int, batch: Batch, family_network: Loaded
) -> None:
    network = family_network(model, width)
    kept = decode(Traced(network), network, batch.ids, batch.mask, STEPS, reading(network), EOS).kept
    for step in range(STEPS):
        added = kept[step]["block_input"] + kept[step]["attention_output"] + kept[step]["mlp_output"]
        assert_close(added, kept[step]["block_output"])
