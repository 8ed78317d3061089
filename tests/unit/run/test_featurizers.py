"""Every kind of featurizer, its arithmetic done by hand on the values read before and after, on every schedule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tests import oracle
from tests.building import document, generated, intervention, read, rows, step, write, write_table
from tests.desk import ENGINES, Desk, Seen, agree
from tests.oracle.spaces import cayley
from torch import Tensor

from causalab_mini.schedule.optimize import MODES, Mode
from causalab_mini.vocabulary import featurizers as kinds

D = 16


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("featurizers"), rows(word=["Thursday", "Friday", "Wednesday"]))


@pytest.fixture
def desk(root: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world("llama", D).over(root)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for every loaded kind, drawn at random; `subspace` and `pca` share their directions."""
    folder = tmp_path_factory.mktemp("files")
    draw = torch.Generator().manual_seed(1)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw) / D**0.5

    basis = torch.linalg.qr(normal(D, 3)).Q.contiguous()
    save_file({"directions": basis}, folder / "subspace.safetensors")
    save_file({"out.basis": basis, "out.mean": normal(D)}, folder / "pca.safetensors")
    maps = {"W_enc": normal(D, 24), "W_dec": normal(24, D), "b_enc": normal(24), "b_dec": normal(D)}
    save_file(maps, folder / "sae.safetensors")
    save_file({name: maps[name] for name in ("W_enc", "W_dec")}, folder / "linear.safetensors")
    save_file({"theta": normal(D)}, folder / "gate.safetensors")
    return folder


LOADED = ("subspace", "pca", "sae", "linear", "gate")
SEEDED = {"kind": "subspace", "k": 3, "seed": 5}


def declared(kind: str, files: Path) -> dict:
    return SEEDED if kind == "seeded" else {"kind": kind, "file_path": str(files / f"{kind}.safetensors")}


def observing(featurizer: dict, writes: dict, decode: int = 0, **reads: object) -> dict:
    """Outputs BEFORE and AFTER of `out1`, whole and through the featurizer `f`."""
    looks = {
        "before": read("out1"),
        "after": read("out1", model="m"),
        "f_before": read("out1", featurizer="f"),
        "f_after": read("out1", model="m", featurizer="f"),
        **reads,
    }
    outputs = {name.upper(): name for name in looks}
    body = intervention(looks, writes, decode=decode)
    return document({"only": step("one", outputs=outputs)}, {"one": body}, featurizers={"f": featurizer})


def close(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["seeded", *LOADED])
def test_a_swap_puts_the_operands_features_in_and_leaves_the_rest(kind: str, desk: Desk, files: Path) -> None:
    asked = observing(
        declared(kind, files),
        {"w": write("out1", -1, "swap", "v", featurizer="f")},
        v=read("out1", 0, role="other", featurizer="f"),
        x_v=read("out1", 0, role="other"),
    )
    seen = desk.one(asked, mode="exact")
    space = oracle.spaces.space(declared(kind, files), D)
    assert space is not None
    for i in range(3):
        x, v = seen.tensor("BEFORE")[i].double(), seen.tensor("X_V")[i].double()
        f = space.encode(x)
        close(seen.tensor("F_BEFORE")[i], f.float())
        close(seen.tensor("V")[i], space.encode(v).float())
        error = x - space.decode(f)
        close(seen.tensor("AFTER")[i], (space.decode(space.encode(v)) + error).float())


def test_a_seeded_subspace_is_the_cayley_transform_of_its_draw(desk: Desk) -> None:
    asked = observing(SEEDED, {"w": write("out1", -1, "swap", 0.0, featurizer="f")})
    seen, basis = desk.one(asked, mode="exact"), cayley(D, 3, 5).float()
    close(seen.tensor("F_BEFORE"), seen.tensor("BEFORE") @ basis)
    close(seen.tensor("F_AFTER"), torch.zeros(3, 3))
    close(seen.tensor("AFTER"), seen.tensor("BEFORE") @ (torch.eye(D) - basis @ basis.T))


@pytest.mark.parametrize("kind", ["seeded", *LOADED])
@pytest.mark.parametrize(("mechanism", "operand", "params"), [("swap", "v", {}), ("lerp", "v", {"t": 0.7})])
def test_a_value_written_into_itself_changes_nothing(
    kind: str, mechanism: str, operand: str, params: dict, desk: Desk, files: Path
) -> None:
    writes = {"w": write("out1", -1, mechanism, operand, featurizer="f", **params)}
    seen = desk.one(observing(declared(kind, files), writes, v=read("out1", featurizer="f")), mode="naive")
    torch.testing.assert_close(seen.tensor("AFTER"), seen.tensor("BEFORE"), rtol=0, atol=1e-5)


def test_features_limit_a_write(desk: Desk, files: Path) -> None:
    featurizer = declared("subspace", files)
    asked = observing(
        featurizer, {"w": write("out1", -1, "add_scaled", 1.0, features=[2, 0], scale=4.0, featurizer="f")}
    )
    seen = desk.one(asked)
    close(seen.tensor("F_AFTER") - seen.tensor("F_BEFORE"), torch.tensor([4.0, 0.0, 4.0]).expand(3, 3))


def test_a_feature_of_a_dictionary_is_ablated_along_its_decoder(desk: Desk, files: Path) -> None:
    featurizer = declared("sae", files)
    plain = desk.one(observing(featurizer, {"w": write("out1", -1, "clamp", features=[0], lo=-9.0, featurizer="f")}))
    active = int(plain.tensor("F_BEFORE").min(0).values.argmax())
    seen = desk.one(observing(featurizer, {"w": write("out1", -1, "swap", 0.0, features=[active], featurizer="f")}))
    decoder = oracle.spaces.load_file(files / "sae.safetensors")["W_dec"][active]
    strength = plain.tensor("F_BEFORE")[:, active, None]
    assert strength.min() > 0
    close(seen.tensor("AFTER"), seen.tensor("BEFORE") - strength * decoder)


def test_a_gate_leaves_closed_coordinates_alone(desk: Desk, files: Path) -> None:
    asked = observing(declared("gate", files), {"w": write("out1", -1, "add_scaled", 1.0, featurizer="f")})
    seen = desk.one(asked)
    opened = (oracle.spaces.load_file(files / "gate.safetensors")["theta"] > 0).float()
    close(seen.tensor("AFTER") - seen.tensor("BEFORE"), opened.expand(3, D))
    close(seen.tensor("F_BEFORE"), seen.tensor("BEFORE") * opened)


def test_renormalize_mends_the_norm_of_the_features(desk: Desk) -> None:
    writes = {
        "push": write("out1", -1, "add_scaled", 3.0, featurizer="f"),
        "mend": write("out1", -1, "renormalize", featurizer="f"),
    }
    seen = desk.one(observing(SEEDED, writes))
    close(seen.tensor("F_AFTER").norm(dim=-1), seen.tensor("F_BEFORE").norm(dim=-1))


def test_noise_is_as_wide_as_the_features(desk: Desk) -> None:
    asked = observing(SEEDED, {"w": write("out1", -1, "gaussian", seed=3, featurizer="f")})
    agree(desk.run(asked), desk.tell(asked))


def mixed(kind: str, files: Path) -> dict:
    """Writes in the prompt and at steps, of a read and of an earlier step's mean, all through one featurizer."""
    featurizer = declared(kind, files)
    late = {"clamp": write("out1", generated(span=[1, 3]), "clamp", lo=-0.2, hi=0.2, featurizer="f")}
    looks = {
        "v": read("out1", {"last": 2}, role="other", featurizer="f"),
        "after": read("out1", {"last": 2}, model="m", featurizer="f"),
        "said": read("out1", generated(all=True), model="n", featurizer="f"),
        "logits": read("head", generated(index=2), model="n"),
    }
    writes = {"w": write("out1", {"last": 2}, "lerp", "v", t=0.5, featurizer="f"), **late}
    models = {"m": {"input": "base", "writes": ["w"]}, "n": {"input": "base", "writes": ["w", "clamp"]}}
    metrics = {"entropy": {"kind": "entropy", "of": "logits"}}
    body = intervention(looks, writes, models, metrics, decode=3)
    outputs = {"AFTER": "after", "SAID": {"read": "said", "reduce": "mean"}}
    more = intervention(
        {"out": read("out1", model="m", featurizer="f")},
        {"w": write("out1", -1, "add_scaled", {"ref": "MEAN"}, featurizer="f")},
    )
    body["reads"]["last"] = read("out1", featurizer="f")
    steps = {
        "first": step("one", outputs={**outputs, "MEAN": {"read": "last", "reduce": "mean"}}),
        "second": step("two", outputs={"OUT": "out"}),
    }
    return document(steps, {"one": body, "two": more}, featurizers={"f": featurizer})


@pytest.mark.parametrize("kind", ["seeded", *LOADED])
def test_every_schedule_and_engine_gives_what_the_row_alone_gives(kind: str, desk: Desk, files: Path) -> None:
    asked = mixed(kind, files)
    wanted = desk.tell(asked)
    for engine in ENGINES:
        for mode in MODES if engine == "hooks" else ("fast",):
            for batch_size in (2, None):
                agree(desk.run(asked, engine, batch_size, mode), wanted)


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_calls_that_differ_in_their_featurizer_alone_are_not_merged(mode: Mode, desk: Desk) -> None:
    asked = observing(SEEDED, {"w": write("out1", -1, "swap", 0.0, featurizer="f")})
    asked["featurizers"]["f"] = {**SEEDED, "seed": {"sweep": [5, 6]}}
    points = desk.run(asked, mode=mode)
    found = [Seen(points[f"seed={seed}"][("only",)]).tensor("AFTER") for seed in (5, 6)]
    assert not torch.allclose(*found)
    agree(points, desk.tell(asked))


@pytest.mark.parametrize(("d", "k", "seed"), [(7, 3, 0), (16, 16, 5), (16, 10, 5), (64, 4, 1)])
def test_cayley_by_the_small_solve(d: int, k: int, seed: int) -> None:
    basis = kinds.cayley(d, k, seed)
    torch.testing.assert_close(basis, cayley(d, k, seed).float(), rtol=0, atol=1e-6)
    torch.testing.assert_close(basis.T @ basis, torch.eye(k), rtol=0, atol=1e-5)


def test_half_precision_is_computed_in_single(root: Path, random_world: Callable[[str, int], Desk]) -> None:
    from causalab_mini.plan.nodes import Space
    from causalab_mini.run.featurizers import Featurizers

    featurizer = Featurizers(torch.device("cpu")).of(Space("f", kinds.Subspace(k=3, seed=5), D, 3))
    x = torch.randn(4, D, generator=torch.Generator().manual_seed(0)).bfloat16()
    f = featurizer.encode(x)
    assert f.dtype == torch.float32
    assert torch.equal(featurizer.inverse(x, f, f), x)
    assert featurizer.inverse(x, f, f + 1).dtype == torch.bfloat16


@pytest.mark.parametrize("mode", MODES)
def test_heads_have_a_space_of_their_own(mode: Mode, shipped: Callable[[str], Desk]) -> None:
    """Half of the heads' axis, written within five directions of its 48 entries."""
    looks = {
        "v": read("z", role="other", featurizer="f"),
        "x": read("z"),
        "after": read("z", model="m"),
        "f_after": read("z", model="m", featurizer="f"),
    }
    body = intervention(looks, {"w": write("z", -1, "swap", "v", featurizer="f")})
    outputs = {name.upper(): name for name in looks}
    asked = document(
        {"only": step("one", "weekdays/train", outputs)},
        {"one": body},
        sites={"z": {"component": "attention_z", "layers": 3, "heads": [1, 3]}},
        featurizers={"f": {"kind": "subspace", "k": 5, "seed": 3}},
    )
    seen, basis = shipped("weekdays-llama").one(asked, mode=mode), cayley(48, 5, 3).float()
    x, v = seen.tensor("X"), seen.tensor("V")
    assert v.shape == (4, 5)
    close(seen.tensor("F_AFTER"), v)
    close(seen.tensor("AFTER"), x + (v - x @ basis) @ basis.T)


def test_a_file_that_changed_since_the_plan_is_not_loaded(tmp_path: Path) -> None:
    from causalab_mini.errors import RunFailure
    from causalab_mini.plan.nodes import Space
    from causalab_mini.run.featurizers import Featurizers

    path = tmp_path / "f.safetensors"
    save_file({"theta": torch.ones(D)}, path)
    space = Space("f", kinds.Gate(), D, D, "another", path, (("theta", "theta"),))
    with pytest.raises(RunFailure, match="'f' changed after the run was planned"):
        Featurizers(torch.device("cpu")).of(space)


def test_directions_left_over_are_no_numbers() -> None:
    from causalab_mini.run.directions import directions

    found = directions(torch.tensor([[1.0, 0.0, 2.0], [3.0, 0.0, 2.0]]), 2)
    close(found.mean, torch.tensor([2.0, 0.0, 2.0]))
    close(found.basis[:, 0], torch.tensor([1.0, 0.0, 0.0]))
    assert found.basis[:, 1].isnan().all()
