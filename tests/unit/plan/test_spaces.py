"""Files of featurizers: what is refused before anything is loaded, where, and in which words; stamps; digests."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.building import document, intervention, read, rows, step, write, write_table
from tests.desk import Desk
from tests.worlds import DOCUMENTS
from torch import Tensor

from causalab_mini.cli import execute
from causalab_mini.data import tensors
from causalab_mini.errors import Problem, Refusal
from causalab_mini.plan.compile import compile_experiment
from causalab_mini.plan.nodes import Experiment
from causalab_mini.spec.load import load

D, K = 16, 3
WHERE = "featurizers.f.file_path"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("spaces"), rows())


@pytest.fixture
def desk(home: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world("llama", D).over(home)


def asked(**featurizer: object) -> dict:
    """A swap through a featurizer `f` at `out1`."""
    body = intervention(
        {"v": read("out1", 0, featurizer="f"), "after": read("out1", model="m")},
        {"w": write("out1", -1, "swap", "v", featurizer="f")},
    )
    return document({"only": step("one", outputs={"AFTER": "after"})}, {"one": body}, featurizers={"f": featurizer})


def compiled(desk: Desk, given: dict, path: Path) -> Experiment:
    """The plan of a document at `path`."""
    text = json.dumps(given).encode()
    return compile_experiment(load(text, path.name), desk.checkpoint, desk.root, path)


def problems(desk: Desk, given: dict, path: Path) -> list[Problem]:
    with pytest.raises(Refusal) as caught:
        compiled(desk, given, path)
    return list(caught.value.problems)


def basis(d: int = D, k: int = K) -> Tensor:
    return torch.linalg.qr(torch.randn(d, d, generator=torch.Generator().manual_seed(0))).Q[:, :k].contiguous()


def maps(d: int = D, k: int = 5) -> dict[str, Tensor]:
    return {"W_enc": torch.ones(d, k), "W_dec": torch.ones(k, d)}


TABLE = [
    ("subspace", None, {}, "there is no file 'f.safetensors'"),
    (
        "subspace",
        {"basis": basis(8)},
        {},
        "the tensor 'basis' of 'f.safetensors' is [8, 3] for [d, k], and the site is 16 wide",
    ),
    ("subspace", {"basis": basis().T.contiguous()}, {}, "is [3, 16] for [d, k], and the site is 16 wide"),
    ("subspace", {"basis": basis()}, {"k": 4}, "is [16, 3] for [d, k], and k is 4"),
    ("subspace", {"basis": torch.ones(D)}, {}, "is [16], and [d, k] is needed"),
    ("subspace", {"basis": 2 * basis()}, {}, "are not orthonormal: column 0 has length 2"),
    ("pca", {"x.basis": basis(), "y.basis": basis()}, {}, "no tensor 'basis'; it has"),
    ("pca", {"basis": basis(), "mean": torch.zeros(8)}, {}, "the tensor 'mean' of 'f.safetensors' is [8] for [d]"),
    ("sae", {"W_enc": torch.ones(D, 5)}, {}, "'f.safetensors' has no tensor 'W_dec'; it has 'W_enc'"),
    ("sae", {**maps(), "threshold": torch.ones(5)}, {}, "has a tensor 'threshold', which the kind sae does not use"),
    ("sae", {"W_enc": torch.ones(D, 5), "W_dec": torch.ones(6, D)}, {}, "is [6, 16] for [k, d], and k is 5"),
    ("linear", {**maps(), "b_enc": torch.ones(4)}, {}, "is [4] for [k], and k is 5"),
    ("gate", {"theta": torch.ones(8)}, {}, "is [8] for [d], and the site is 16 wide"),
    ("gate", {"theta": torch.ones(D, dtype=torch.int64)}, {}, "the tensor 'theta' of 'f.safetensors' is I64"),
]


@pytest.mark.parametrize(("kind", "held", "more", "message"), TABLE)
def test_a_file_that_does_not_fit_is_refused(
    kind: str, held: dict[str, Tensor] | None, more: dict, message: str, desk: Desk, tmp_path: Path
) -> None:
    if held is not None:
        save_file(held, tmp_path / "f.safetensors")
    found = problems(desk, asked(kind=kind, file_path="f.safetensors", **more), tmp_path / "document.json")
    assert [problem.path for problem in found] == [WHERE]
    assert message in found[0].message


def test_columns_that_are_not_orthogonal_are_named(desk: Desk, tmp_path: Path) -> None:
    skewed = basis()
    skewed[:, 2] = (skewed[:, 2] + skewed[:, 0]) / 2**0.5
    save_file({"basis": skewed}, tmp_path / "f.safetensors")
    (problem,) = problems(desk, asked(kind="pca", file_path="f.safetensors"), tmp_path / "document.json")
    assert problem.message.endswith("columns 0 and 2 have the product 0.7071")


@pytest.mark.parametrize(
    "content", [b"", b"{}", struct.pack("<Q", 10**9) + b"{}", struct.pack("<Q", 2) + b"[]", b"\x80\x02}q\x00."]
)
def test_what_is_no_safetensors_file_is_said_to_be_none(content: bytes, desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "f.safetensors").write_bytes(content)
    (problem,) = problems(desk, asked(kind="sae", file_path="f.safetensors"), tmp_path / "document.json")
    assert (problem.path, problem.message) == (WHERE, "'f.safetensors' is not a safetensors file")


def test_an_unused_featurizers_file_is_looked_at_too(desk: Desk, tmp_path: Path) -> None:
    given = asked(kind="subspace", k=2, seed=0)
    given["featurizers"]["spare"] = {"kind": "sae", "file_path": "gone.safetensors"}
    (problem,) = problems(desk, given, tmp_path / "document.json")
    assert problem.path == "featurizers.spare.file_path"


def test_a_seeded_subspace_is_no_wider_than_its_site(desk: Desk, tmp_path: Path) -> None:
    (problem,) = problems(desk, asked(kind="subspace", k=17, seed=0), tmp_path / "document.json")
    assert (problem.path, problem.message) == ("featurizers.f.k", "k is 17, and the site is 16 wide")


def test_a_feature_past_the_space_is_refused(desk: Desk, tmp_path: Path) -> None:
    given = asked(kind="subspace", k=2, seed=0)
    given["interventions"]["one"]["writes"]["w"]["features"] = [2]
    (problem,) = problems(desk, given, tmp_path / "document.json")
    assert problem.path == "interventions.one.writes.w.features"
    assert problem.message == "feature 2 is past the width 2 of 'f'"


def test_more_directions_than_there_can_be_are_refused(desk: Desk) -> None:
    body = intervention({"v": read("out1")})
    given = document({"only": step("one", outputs={"D": {"read": "v", "reduce": "pca", "k": 3}})}, {"one": body})
    (problem,) = desk.problems(given)
    assert problem.path == "steps.only.outputs.D.k"
    assert problem.message == "3 vectors, 16 wide, have at most 2 principal directions, and k is 3"


def test_every_mismatch_of_a_stamp_is_told_with_both_values(desk: Desk, tmp_path: Path) -> None:
    stamp = {"model": "other/model", "component": "mlp_output", "layer": "2", "kind": "sae", "width": "16", "x": "y"}
    save_file({"basis": basis()}, tmp_path / "f.safetensors", metadata=stamp)
    found = problems(desk, asked(kind="subspace", file_path="f.safetensors"), tmp_path / "document.json")
    assert {problem.path for problem in found} == {WHERE}
    told = " ".join(problem.message for problem in found)
    for said, is_ in (
        ("other/model", desk.checkpoint.key),
        ("mlp_output", "block_output"),
        ("2", "1"),
        ("sae", "subspace"),
    ):
        assert f"its stamp says '{said}', the document says '{is_}'" in told
    assert len(found) == 4


def test_a_stamp_of_other_weights_is_refused(desk: Desk, tmp_path: Path) -> None:
    own = desk.checkpoint.resolved or desk.checkpoint.digest()
    stamp = {"component": "block_output", "layer": "1", "kind": "subspace", "width": "16"}
    given = asked(kind="subspace", file_path="f.safetensors")
    for resolved in (own, "0" * 40):
        save_file({"basis": basis()}, tmp_path / "f.safetensors", metadata={**stamp, "resolved": resolved})
        compiled(desk, given, tmp_path / "document.json")
    save_file({"basis": basis()}, tmp_path / "f.safetensors", metadata={**stamp, "resolved": "0" * len(own)})
    (problem,) = problems(desk, given, tmp_path / "document.json")
    assert "another resolved: its stamp says '0000" in problem.message
    assert f"the document says '{own}'" in problem.message


def test_a_stamp_of_heads_is_needed_where_the_site_has_some(desk: Desk, tmp_path: Path) -> None:
    stamp = {"component": "block_output", "layer": "1", "heads": "0", "kind": "subspace", "width": "16"}
    save_file({"basis": basis()}, tmp_path / "f.safetensors", metadata=stamp)
    (problem,) = problems(desk, asked(kind="subspace", file_path="f.safetensors"), tmp_path / "document.json")
    assert "another heads: its stamp says '0', the document says none" in problem.message


def test_a_file_without_a_stamp_is_accepted_and_warned_about(desk: Desk, tmp_path: Path) -> None:
    save_file({"anything": basis()}, tmp_path / "f.safetensors", metadata={"format": "pt"})
    experiment = compiled(desk, asked(kind="subspace", file_path="f.safetensors"), tmp_path / "document.json")
    assert experiment.warnings == ("'f.safetensors' has no stamp: nothing says which model and site it was made for",)
    (space,) = experiment.spaces
    content = (tmp_path / "f.safetensors").read_bytes()
    assert (space.stamped, space.k, space.sha256) == (False, K, hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_numbers_of_every_dtype_are_read(dtype: torch.dtype, tmp_path: Path) -> None:
    path = tmp_path / "f.safetensors"
    save_file({"basis": basis().to(dtype)}, path)
    file = tensors.read(path, "f")
    assert torch.equal(torch.tensor(file.numbers("basis"), dtype=torch.float64), basis().to(dtype).double().flatten())
    assert tensors.skew(file, "basis") is None


def test_a_changed_file_makes_a_run_compute_its_points_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    file = folder / "weekday_sae.safetensors"
    file.write_bytes((DOCUMENTS / "v2" / "files" / file.name).read_bytes())
    given = json.loads((DOCUMENTS / "v2" / "sae_feature_ablation.json").read_text())
    given["interventions"]["ablate"]["writes"]["off"]["features"] = [27]
    path = tmp_path / "document.json"
    path.write_text(json.dumps(given))
    command = ["run", str(path), "--out", str(tmp_path / "out"), "--engine", "hooks", "--json"]
    command += ["--data-root", str(DOCUMENTS.parent / "datasets")]

    def run() -> dict:
        assert execute(command) == 0
        return json.loads(capsys.readouterr().out)["points"]

    assert run() == {"run": 1, "kept": 0}
    assert run() == {"run": 0, "kept": 1}
    changed = load_file(file)
    changed["b_dec"] += 1
    save_file(changed, file)
    assert run() == {"run": 1, "kept": 0}
    (record,) = json.loads((tmp_path / "out" / "run.json").read_text())["featurizers"]
    assert record["stamped"] is False
    assert record["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()


def test_what_a_run_saves_loads_with_its_stamp(desk: Desk) -> None:
    name = "files/weekday_directions_4.safetensors"
    file = tensors.read(DOCUMENTS / "v2" / name, name)
    assert {key: file.metadata[key] for key in ("model", "revision", "component", "layer", "kind", "width")} == {
        "model": "causalab-mini/weekdays-llama",
        "revision": "main",
        "component": "block_output",
        "layer": "4",
        "kind": "pca",
        "width": "96",
    }


def test_looking_at_files_needs_no_tensor_library() -> None:
    script = """
import sys
from causalab_mini.cli import execute
assert execute(["explain", "documents/v2/pca_control.json"]) == 0
print([name for name in ("torch", "numpy", "safetensors", "transformers") if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=DOCUMENTS.parent, capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines()[-1] == "[]"


def test_writes_to_different_directions_do_not_undo_each_other(desk: Desk, tmp_path: Path) -> None:
    given = asked(kind="subspace", k=2, seed=0)
    body = given["interventions"]["one"]
    body["writes"] = {
        name: write("out1", -1, "swap", 1.0, featurizer="f", features=[i]) for i, name in enumerate(("w", "u"))
    }
    body["models"]["m"]["writes"] = ["w", "u"]
    assert len(compiled(desk, given, tmp_path / "document.json").points) == 1
