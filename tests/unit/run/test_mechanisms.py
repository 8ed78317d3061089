"""The six mechanisms and every kind of operand, their arithmetic done by hand on the values read before and after."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.building import document, generated, intervention, observing, read, rows, step, write, write_table
from tests.desk import Desk, Seen
from torch import Tensor

STEPS = 3
WORD = {"variable": "word"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("mechanisms"), rows(word=["Thursday", "Friday", "Wednesday"]))


@pytest.fixture
def desk(root: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world("llama", 16).over(root)


def changed(desk: Desk, writes: dict, pos: object = -1, site: str = "out1", decode: int = 0, **reads: object) -> Seen:
    """Outputs BEFORE and AFTER: a site's value in the untouched and in the written model, by an exact schedule."""
    body = intervention({"before": read(site, pos), "after": read(site, pos, "m"), **reads}, writes, decode=decode)
    outputs = {"BEFORE": "before", "AFTER": "after"} | {name.upper(): name for name in reads}
    return desk.one(observing(body, outputs=outputs), mode="exact")


def close(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


def test_swap(desk: Desk) -> None:
    seen = changed(desk, {"w": write("out1", -1, "swap", "v")}, v=read("in1", 0, role="other"))
    assert torch.equal(seen.tensor("AFTER"), seen.tensor("V"))


def test_add_scaled(desk: Desk) -> None:
    seen = changed(desk, {"w": write("out1", -1, "add_scaled", "v", scale=-2.5)}, v=read("mlp0", -2))
    close(seen.tensor("AFTER"), seen.tensor("BEFORE") - 2.5 * seen.tensor("V"))


def test_add_scaled_adds_once_unless_told_otherwise(desk: Desk) -> None:
    seen = changed(desk, {"w": write("out1", -1, "add_scaled", "v")}, v=read("mlp0", -2))
    close(seen.tensor("AFTER"), seen.tensor("BEFORE") + seen.tensor("V"))


def test_lerp(desk: Desk) -> None:
    seen = changed(desk, {"w": write("out1", -1, "lerp", "v", t=0.25)}, v=read("embeddings", 0))
    close(seen.tensor("AFTER"), 0.75 * seen.tensor("BEFORE") + 0.25 * seen.tensor("V"))


@pytest.mark.parametrize(
    ("params", "low", "high"),
    [({"lo": -0.3, "hi": 0.2}, -0.3, 0.2), ({"lo": 0.0}, 0.0, torch.inf), ({"hi": -0.1}, -torch.inf, -0.1)],
)
def test_clamp(desk: Desk, params: dict, low: float, high: float) -> None:
    seen = changed(desk, {"w": write("out1", -1, "clamp", **params)})
    before, after = seen.tensor("BEFORE"), seen.tensor("AFTER")
    wanted = torch.where(before < low, low, torch.where(before > high, high, before))
    assert torch.equal(after, wanted)
    assert not torch.equal(after, before)


def epsilon(seed: int, example_id: str, at: int, positions: int, width: int = 16) -> Tensor:
    digest = hashlib.sha256(f"{seed}:{example_id}:{at}".encode()).digest()
    generator = torch.Generator("cpu").manual_seed(int.from_bytes(digest[:8], "big") % (1 << 63))
    return torch.randn(positions, width, generator=generator)


def test_gaussian_in_the_prompt(desk: Desk) -> None:
    seen = changed(desk, {"w": write("out1", {"last": 2}, "gaussian", seed=7, scale=0.5)}, {"last": 2})
    noise = torch.stack([epsilon(7, f"row-{row}", 0, 2) for row in range(3)])
    close(seen.tensor("AFTER"), seen.tensor("BEFORE") + 0.5 * noise)


def test_gaussian_is_drawn_anew_at_every_step(desk: Desk) -> None:
    everywhere = generated(all=True)
    # Written after the last block nothing reaches a later step but the tokens: compare what the write adds.
    body = intervention(
        {"before": read("norm", generated(index=0)), "after": read("norm", everywhere, "m")},
        {"zero": write("norm", everywhere, "swap", 0.0), "w": write("norm", everywhere, "gaussian", seed=3)},
        decode=STEPS,
    )
    seen = desk.one(observing(body, outputs={"AFTER": "after"}))
    wanted = torch.stack([torch.cat([epsilon(3, f"row-{row}", step, 1) for step in range(STEPS)]) for row in range(3)])
    close(seen.tensor("AFTER"), wanted)


def test_noise_depends_on_the_row_alone(desk: Desk, tmp_path: Path) -> None:
    writes = {"w": write("out1", -1, "gaussian", seed=7)}
    whole = changed(desk, writes)
    table = rows()
    backwards = changed(desk.over(write_table(tmp_path, table[::-1])), writes)
    close(whole.tensor("AFTER"), backwards.tensor("AFTER").flip(0))


def test_renormalize_restores_the_norm(desk: Desk) -> None:
    writes = {"w": write("out1", -1, "add_scaled", "v", scale=5), "n": write("out1", -1, "renormalize")}
    seen = changed(desk, writes, v=read("mlp0", 0))
    before, after = seen.tensor("BEFORE"), seen.tensor("AFTER")
    close(after.norm(dim=-1), before.norm(dim=-1))
    moved = before + 5 * seen.tensor("V")
    close(after, moved * (before.norm(dim=-1) / moved.norm(dim=-1))[:, None])


def test_renormalize_means_the_norm_before_all_writes(desk: Desk) -> None:
    writes = {
        "one": write("out1", -1, "add_scaled", 1.0),
        "two": write("out1", -1, "add_scaled", "v", scale=3),
        "n": write("out1", -1, "renormalize"),
    }
    seen = changed(desk, writes, v=read("mlp0", 0))
    close(seen.tensor("AFTER").norm(dim=-1), seen.tensor("BEFORE").norm(dim=-1))


def test_writes_at_one_place_act_in_the_order_of_the_model(desk: Desk) -> None:
    half, more = write("out1", -1, "lerp", 0.0, t=0.5), write("out1", -1, "add_scaled", 1.0)
    first = changed(desk, {"half": half, "more": more})
    second = changed(desk, {"more": more, "half": half})
    close(first.tensor("AFTER"), 0.5 * first.tensor("BEFORE") + 1)
    close(second.tensor("AFTER"), 0.5 * (second.tensor("BEFORE") + 1))


@pytest.mark.parametrize(
    ("mechanism", "more"),
    [
        ("swap", {}),
        ("add_scaled", {"scale": 2.0}),
        ("lerp", {"t": 0.5}),
        ("clamp", {"hi": 0.0}),
        ("gaussian", {"seed": 1}),
    ],
)
def test_features_limit_a_write(desk: Desk, mechanism: str, more: dict) -> None:
    operand = "v" if mechanism in ("swap", "add_scaled", "lerp") else None
    reads = {"v": read("mlp0", 0)}
    whole = changed(desk, {"w": write("out1", -1, mechanism, operand, **more)}, **reads)
    some = changed(desk, {"w": write("out1", -1, mechanism, operand, features=[3, 0, 11], **more)}, **reads)
    chosen = [0, 3, 11]
    others = [feature for feature in range(16) if feature not in chosen]
    close(some.tensor("AFTER")[:, chosen], whole.tensor("AFTER")[:, chosen])
    assert torch.equal(some.tensor("AFTER")[:, others], some.tensor("BEFORE")[:, others])


def test_a_literal_is_every_entry(desk: Desk) -> None:
    seen = changed(desk, {"w": write("out1", -1, "swap", 0.75)})
    assert torch.equal(seen.tensor("AFTER"), torch.full((3, 16), 0.75))


def test_an_operand_of_one_token_goes_to_every_token(desk: Desk) -> None:
    seen = changed(desk, {"w": write("out1", {"last": 3}, "swap", "v")}, {"last": 3}, v=read("in1", 0))
    assert torch.equal(seen.tensor("AFTER"), seen.tensor("V")[:, None].expand(3, 3, 16))


def test_an_operand_of_as_many_tokens_goes_token_by_token(desk: Desk) -> None:
    seen = changed(desk, {"w": write("out1", {"last": 2}, "swap", "v")}, {"last": 2}, v=read("in1", {"span": [0, 2]}))
    assert torch.equal(seen.tensor("AFTER"), seen.tensor("V"))


def test_an_operand_of_as_many_steps_goes_step_by_step(desk: Desk) -> None:
    steps = generated(span=[1, 3])
    reads = {"v": read("in1", {"last": 2})}
    seen = changed(desk, {"w": write("out1", steps, "swap", "v")}, steps, decode=STEPS, **reads)
    assert torch.equal(seen.tensor("AFTER"), seen.tensor("V"))


def test_ragged_windows_go_row_by_row(desk: Desk, tmp_path: Path) -> None:
    """A word of several tokens in one row and of one in another, moved to the same word's tokens."""
    words = ["today is Thursday", "Friday", "Wednesday, I"]
    pos = {"all": True, "scope": WORD}
    seen = changed(
        desk.over(write_table(tmp_path, rows(word=words))),
        {"w": write("out1", pos, "swap", "v")},
        pos,
        v=read("in1", pos),
    )
    lengths = seen.tensors("AFTER")["AFTER.lengths"].tolist()
    assert len(set(lengths)) > 1
    assert torch.equal(seen.tensor("AFTER"), seen.tensor("V"))
    assert len(seen.tensor("V")) == sum(lengths)


def test_a_chain_of_models(desk: Desk) -> None:
    """m2 puts in what m1 made, which is not what the original has."""
    body = intervention(
        {
            "v": read("in1", 0),
            "clean": read("out1"),
            "made": read("out2", -1, "m1"),
            "after": read("out1", -1, "m2"),
        },
        {"first": write("out1", -1, "add_scaled", "v", scale=2), "second": write("out1", -1, "swap", "made")},
        {"m2": {"input": "base", "writes": ["second"]}, "m1": {"input": "base", "writes": ["first"]}},
    )
    outputs = {"MADE": "made", "AFTER": "after", "CLEAN": "clean"}
    seen = desk.one(observing(body, outputs=outputs))
    assert torch.equal(seen.tensor("AFTER"), seen.tensor("MADE"))
    alone = intervention({"made": read("out2")})
    assert not torch.equal(desk.one(observing(alone, outputs={"MADE": "made"})).tensor("MADE"), seen.tensor("MADE"))


def two_steps(reduce: str, source: dict, taken: dict) -> dict:
    """A step that publishes `source` as V, and one that swaps it in where `taken` says, reading it there."""
    give = intervention({"v": source})
    take = intervention({"after": read("out1", taken["pos"], "m")}, {"w": taken})
    return document(
        {
            "one": step("give", outputs={"V": {"read": "v", "reduce": reduce}}),
            "two": step("take", outputs={"AFTER": "after"}),
        },
        {"give": give, "take": take},
    )


def outcome(desk: Desk, asked: dict) -> tuple[Tensor, Tensor]:
    (steps,) = desk.run(asked).values()
    return Seen(steps["one",]).tensor("V"), Seen(steps["two",]).tensor("AFTER")


def test_what_an_earlier_step_published_row_by_row(desk: Desk) -> None:
    given, after = outcome(desk, two_steps("none", read("in1", 0), write("out1", -1, "swap", {"ref": "V"})))
    assert torch.equal(given, after)
    wide = write("out1", {"last": 2}, "swap", {"ref": "V"})
    given, after = outcome(desk, two_steps("none", read("in1", {"span": [0, 2]}), wide))
    assert given.shape == (3, 2, 16)
    assert torch.equal(given, after)


def test_what_an_earlier_step_published_as_a_mean(desk: Desk) -> None:
    given, after = outcome(desk, two_steps("mean", read("in1", 0), write("out1", {"last": 2}, "swap", {"ref": "V"})))
    assert given.shape == (16,)
    assert torch.equal(after, given.expand(3, 2, 16))
    ragged = read("in1", {"all": True})
    given, after = outcome(desk, two_steps("mean", ragged, write("out1", {"last": 3}, "swap", {"ref": "V"})))
    assert torch.equal(after, given.expand(3, 3, 16))


def test_what_an_earlier_step_published_of_rows_unequally_long(desk: Desk, tmp_path: Path) -> None:
    pos = {"all": True, "scope": WORD}
    there = desk.over(write_table(tmp_path, rows(word=["today is Thursday", "Friday", "Wednesday, I"])))
    given, after = outcome(there, two_steps("none", read("in1", pos), write("out1", pos, "swap", {"ref": "V"})))
    assert torch.equal(given, after)
