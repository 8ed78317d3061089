"""Attention patterns, read and written: every family, against plain eager transformers and attention written out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests import families, outcome, plain
from tests.building import PROMPTS, generated, intervention, observing, read, rows, write, write_table
from tests.desk import Desk, Seen
from torch import Tensor

from causalab_mini.schedule.optimize import Mode

VARIANTS = (*families.FAMILIES, *(name for name in families.MORE if name != "bloom"), "mistral_sliding")
WIDTHS = (16, 64, 512)
LAYER, STEPS, EOS = 1, 4, [1]
PARTS = ("attention_scores", "attention_probs")
BATCH = [*PROMPTS, "If today is Thursday, then I"]
WAYS: list[tuple[str, int | None, Mode]] = [
    ("hooks", None, "naive"),
    ("traced", 1, "naive"),
    ("traced", 3, "exact"),
    ("hooks", None, "fast"),
    ("traced", None, "fast"),
    ("hooks", 1, "fast"),
]
FEW = [WAYS[0], WAYS[4]]
Worlds = Callable[[str, int], Desk]


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # The first and the last prompt begin alike, so that schedules have something to share.
    return write_table(tmp_path_factory.mktemp("patterns"), rows(BATCH))


@pytest.fixture(scope="session")
def eager(root: Path, random_world: Worlds) -> Worlds:
    """A desk whose model computes under eager attention."""
    return lambda variant, width: random_world(variant, width).over(root).under("eager")


def placed(body: dict, outputs: dict, **sites: dict) -> dict:
    """A document of one step on eager attention, with sites of patterns."""
    made = observing(body, outputs=outputs)
    patterns = {part.removeprefix("attention_"): {"component": part, "layers": LAYER} for part in PARTS}
    model = {**made["model"], "attn_implementation": "eager"}
    return {**made, "model": model, "sites": {**made["sites"], **patterns, **sites}}


def seen(desk: Desk, document: dict, way: tuple[str, int | None, Mode]) -> Seen:
    with outcome.priced(1):
        return desk.one(document, *way)


def prompts(desk: Desk) -> list[list[int]]:
    return [families.encode(desk.folder, text) for text in BATCH]


def close(found: Tensor, wanted: Tensor, where: object) -> None:
    assert found.shape == wanted.shape, where
    assert (found - wanted).abs().max() <= 1e-4 * wanted.abs().max().clamp(min=1), where


def alone(
    desk: Desk,
    ids: list[int],
    edits: list[tuple[str, int, Callable[[Tensor], Tensor]]] | None = None,
    tokens: tuple[int, ...] = (),
    steps: int = STEPS,
) -> plain.Rollout:
    """A row alone; edits are (component, token, change); the patterns of `tokens`, and of every step, by component."""
    module = desk.network.locate("attention_probs", LAYER).path.rpartition(".")[0]
    later = range(len(ids) - 1, len(ids) - 1 + steps)
    looks = [
        plain.Look(f"{part}@{token}", module, part.removeprefix("attention_"), token)
        for part in PARTS
        for token in {*tokens, *later}
    ]
    changes = [
        plain.Edit(module, part.removeprefix("attention_"), token, change) for part, token, change in edits or []
    ]
    return plain.run(desk.network.model, ids, changes, looks, steps, EOS)


def among(heads: tuple[int, ...], change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A change of some heads of a pattern [H, T], all where none are named."""

    def limited(pattern: Tensor) -> Tensor:
        some = list(heads) or list(range(len(pattern)))
        new = pattern.clone()
        new[some] = change(pattern[some])
        return new

    return limited


def stock(desk: Desk, ids: list[int]) -> list[tuple[Tensor, ...]]:
    """By step, the patterns [1, H, T, T] of all layers that plain eager transformers gives of a row alone."""
    model, ids, found = desk.network.model, list(ids), []
    for _ in range(STEPS):
        with torch.no_grad():
            out = model(input_ids=torch.tensor([ids]), use_cache=False, output_attentions=True)
        found.append(out.attentions)
        choice = out.logits[0, -1].clone()
        choice[EOS] = -torch.inf
        ids.append(int(choice.argmax()))
    return found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_read_is_what_plain_transformers_says_of_the_row_alone(variant: str, width: int, eager: Worlds) -> None:
    desk = eager(variant, width)
    reads = {
        f"{part}_{name}": read(part, pos)
        for part in ("scores", "probs")
        for name, pos in {"first": 0, "last": {"last": 2}, "steps": generated(all=True)}.items()
    }
    document = placed(intervention(reads, decode=STEPS), {name.upper(): name for name in reads})
    batch, prefix = prompts(desk), len(desk.checkpoint.prefix)
    told = [(stock(desk, ids), alone(desk, ids, tokens=(prefix, len(ids) - 2)).values) for ids in batch]
    for way in WAYS if width == 64 else FEW:
        found = seen(desk, document, way)
        for row, (ids, (plainly, written)) in enumerate(zip(batch, told, strict=True)):
            size = len(ids)
            for part in ("scores", "probs"):
                first, last, steps = (found.tensor(f"{part}_{name}".upper()) for name in ("first", "last", "steps"))
                own = [written[f"attention_{part}@{token}"] for token in range(size - 2, size + STEPS - 1)]
                close(first[row, :, :size], written[f"attention_{part}@{prefix}"], (way, row, part))
                close(last[row, :, :, :size], torch.stack(own[:2]), (way, row, part))
                for step in range(STEPS):
                    wanted = own[step + 1]
                    close(steps[row, step, :, : size + step], wanted, (way, row, part, step))
                    assert not steps[row, step, :, size + step :].any()
                    if part == "probs":
                        close(steps[row, step, :, : size + step], plainly[step][LAYER][0, :, -1], (way, row, step))
                        close(steps[row, step].sum(-1), torch.ones(steps.shape[2]), (way, row, step))
                assert not first[row, :, size:].any()
                assert not first[row, :, prefix + 1 :].any(), "a query sees no later token"
            assert found.tensors("PROBS_STEPS")["PROBS_STEPS.keys"][row].tolist() == [size + s for s in range(STEPS)]
            assert found.tensors("PROBS_FIRST")["PROBS_FIRST.keys"][row] == size


@pytest.mark.parametrize("way", [WAYS[0], WAYS[2], WAYS[4]])
def test_a_pattern_found_afterwards_is_over_the_keys_of_its_own_step(
    way: tuple[str, int | None, Mode], eager: Worlds
) -> None:
    """The last step but one: as many keys as are named, whatever later steps would have."""
    desk = eager("llama", 16)
    reads = {"found": read("probs", generated(index=-2)), "named": read("probs", generated(index=STEPS - 2))}
    document = placed(intervention(reads, decode=STEPS), {name.upper(): name for name in reads})
    seen_there = seen(desk, document, way)
    found, named = seen_there.tensor("FOUND"), seen_there.tensor("NAMED")
    assert torch.equal(found, named)
    assert found.shape[-1] == max(seen_there.tensors("FOUND")["FOUND.keys"].tolist())


def test_a_mean_of_patterns_found_afterwards_is_over_the_keys_of_their_own_step(eager: Worlds, tmp_path: Path) -> None:
    desk = eager("llama", 16).over(write_table(tmp_path, rows(SAME)))
    reads = {"found": read("probs", generated(index=-2)), "named": read("probs", generated(index=STEPS - 2))}
    document = placed(intervention(reads, decode=STEPS), {name.upper(): name for name in reads})
    step = document["steps"]["only"]
    step["outputs"] = {name: {"read": name.lower(), "reduce": "mean"} for name in step["outputs"]}
    found = seen(desk, document, WAYS[0])
    assert torch.equal(found.tensor("FOUND"), found.tensor("NAMED"))


def half(entries: Tensor) -> Tensor:
    return 0.5 * entries


def flat(entries: Tensor) -> Tensor:
    return torch.full_like(entries, 0.25)


def floor(entries: Tensor) -> Tensor:
    return entries.clamp(min=0.3)


WRITES = {
    "lerp": ({"mechanism": "lerp", "operand": 0.0, "params": {"t": 0.5}}, half),
    "swap": ({"mechanism": "swap", "operand": 0.25}, flat),
    "clamp": ({"mechanism": "clamp", "params": {"lo": 0.3}}, floor),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_write_is_what_attention_written_out_does(variant: str, part: str, eager: Worlds) -> None:
    """Each write in a model of its own, at the second token, the last two, the prefill and two steps."""
    desk = eager(variant, 64)
    batch, prefix = prompts(desk), len(desk.checkpoint.prefix)
    places: dict[str, tuple[dict, Callable[[int], list[int]]]] = {
        "early": ({"index": 1}, lambda size: [prefix + 1]),
        "last": ({"last": 2}, lambda size: [size - 2, size - 1]),
        "step": (generated(index=0), lambda size: [size - 1]),
        "later": (generated(span=[1, 3]), lambda size: [size, size + 1]),
    }
    reads, writes, models = {"clean": read("head", generated(all=True))}, {}, {}
    cases: dict[str, tuple[Callable[[int], list[int]], tuple[int, ...], Callable[[Tensor], Tensor]]] = {}
    for i, (kind, (fields, change)) in enumerate(WRITES.items()):
        for j, (place, (pos, tokens)) in enumerate(places.items()):
            site, heads = ("some", (1, 3)) if (i + j) % 2 else ("all", ())
            name = f"{kind}_{place}"
            writes[name] = {"site": site, "pos": pos, **fields}
            models[name] = {"input": "base", "writes": [name]}
            reads[name] = read("head", generated(all=True), name)
            reads[f"{name}_there"] = read("all", generated(all=True), name)
            cases[name] = (tokens, heads, change)
    document = placed(
        intervention(reads, writes, models, decode=STEPS),
        {name.upper(): name for name in reads},
        all={"component": part, "layers": LAYER},
        some={"component": part, "layers": LAYER, "heads": [1, 3]},
    )
    told = {
        name: [alone(desk, ids, [(part, token, among(heads, change)) for token in tokens(len(ids))]) for ids in batch]
        for name, (tokens, heads, change) in cases.items()
    }
    for way in WAYS:
        found = seen(desk, document, way)
        for name, noted in told.items():
            logits, there = found.tensor(name.upper()), found.tensor(f"{name}_there".upper())
            assert not torch.equal(logits, found.tensor("CLEAN")), name
            for row, (ids, one) in enumerate(zip(batch, noted, strict=True)):
                close(logits[row], one.logits, (way, name, row))
                for step in range(STEPS):
                    wanted = one.values[f"{part}@{len(ids) - 1 + step}"]
                    close(there[row, step, :, : wanted.shape[-1]], wanted, (way, name, row, step))


SAME = ["If today is Thursday, tomorrow is", "If today is Monday, tomorrow is", "If today is Sunday, tomorrow is"]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("variant", ["llama", "gemma2", "gpt2"])
def test_a_pattern_of_another_row_takes_the_place_of_its_own(
    variant: str, part: str, eager: Worlds, tmp_path: Path
) -> None:
    desk = eager(variant, 64)
    desk = desk.over(write_table(tmp_path, rows(SAME)))
    batch = [families.encode(desk.folder, text) for text in SAME]
    assert len({len(ids) for ids in batch}) == 1
    size = len(batch[0])
    reads = {
        "theirs": read("here", {"last": 3}, role="other"),
        "now": read("here", {"last": 3}, "m"),
        "said": read("head", generated(all=True), "m"),
        "meant": read("head", -1, "mean"),
    }
    writes = {
        "patch": write("here", {"last": 3}, "swap", "theirs"),
        "average": write("here", {"last": 3}, "swap", {"ref": "average"}),
    }
    models = {"m": {"input": "base", "writes": ["patch"]}}
    body = intervention(
        {key: reads[key] for key in ("theirs", "now", "said")}, {"patch": writes["patch"]}, models, decode=2
    )
    averaging = intervention(
        {"meant": reads["meant"]}, {"average": writes["average"]}, {"mean": {"input": "base", "writes": ["average"]}}
    )
    document = placed(body, {"NOW": "now", "SAID": "said"}, here={"component": part, "layers": LAYER, "heads": [0, 2]})
    document["interventions"]["two"] = averaging
    first = document["steps"]["only"]
    first["outputs"]["average"] = {"read": "theirs", "reduce": "mean"}
    document["steps"]["after"] = {
        **first,
        "interventions": "two",
        "outputs": {"MEANT": "meant"},
        "saves": [{"value": "MEANT", "file_path": "m.safetensors"}],
    }
    first["interventions"] = "one"
    clean = [
        torch.stack([one.values[f"{part}@{token}"] for token in range(size - 3, size)])
        for one in (alone(desk, ids, tokens=tuple(range(size - 3, size)), steps=1) for ids in batch)
    ]

    def put(source: Tensor) -> list[tuple[str, int, Callable[[Tensor], Tensor]]]:
        """Patterns [3, H, T] in place of the last three, of two heads."""

        def change(place: int) -> Callable[[Tensor], Tensor]:
            # A later step is computed with the whole text, longer than when the pattern was read.
            return lambda f: torch.nn.functional.pad(source[place, [0, 2]], (0, f.shape[-1] - size))

        return [(part, size - 3 + place, among((0, 2), change(place))) for place in range(3)]

    for way in WAYS:
        with outcome.priced(1):
            ((_, steps),) = desk.run(document, *way).items()
        found, later = Seen(steps[("only",)]), Seen(steps[("after",)])
        for row, ids in enumerate(batch):
            other, mean = clean[(row + 1) % len(batch)], torch.stack(clean).mean(0)
            close(found.tensor("SAID")[row], alone(desk, ids, put(other), steps=2).logits, (way, row))
            close(found.tensor("NOW")[row], other[:, [0, 2]], (way, row))
            close(later.tensor("MEANT")[row], alone(desk, ids, put(mean), steps=1).logits[0], (way, row))
