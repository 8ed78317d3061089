from hashlib import sha256
from pathlib import Path

import pytest
from tests.unit.checkpoint import small

from causalab_mini.checkpoint import resolve as resolving
from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.errors import ModelUnavailable, PlanRefusal
from causalab_mini.vocabulary.components import COMPONENTS


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of its own, an empty hub cache, no network."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return here


def test_a_folder_from_the_working_directory(nowhere: Path) -> None:
    small.folder(nowhere / "models" / "tiny")
    found = resolve("models/tiny")
    assert (found.key, found.revision, found.source, found.resolved) == ("models/tiny", "main", "folder", None)
    assert (found.depth, found.hidden, found.heads, found.kv_heads, found.head_dim) == (4, 32, 4, 2, 8)
    assert (found.model_type, found.context, found.prefix, found.supported) == ("llama", 64, (0,), True)
    assert found.vocab == small.with_bos().get_vocab_size()
    routing = ("router_logits", "expert_weights", "expert_indices")
    assert found.components() == tuple(c.name for c in COMPONENTS if not c.recurrent and c.name not in routing)


def test_then_from_the_document(tmp_path: Path) -> None:
    small.folder(tmp_path / "documents" / "tiny")
    document = tmp_path / "documents" / "one.json"
    assert resolve("tiny", document=document).folder.resolve() == (tmp_path / "documents" / "tiny").resolve()
    assert resolve(str(tmp_path / "documents" / "tiny")).source == "folder"


def test_the_working_directory_comes_first(nowhere: Path, tmp_path: Path) -> None:
    small.folder(nowhere / "tiny", config={**small.CONFIG, "num_hidden_layers": 1})
    small.folder(tmp_path / "documents" / "tiny", config={**small.CONFIG, "num_hidden_layers": 2})
    assert resolve("tiny", document=tmp_path / "documents" / "one.json").depth == 1


def test_weights_take_the_place_of_the_key(tmp_path: Path) -> None:
    small.folder(tmp_path / "elsewhere")
    found = resolve("org/name", "v2", weights=tmp_path / "elsewhere")
    assert (found.key, found.revision, found.source, found.folder) == (
        "org/name",
        "v2",
        "weights",
        tmp_path / "elsewhere",
    )


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("./nothing", "no such folder: './nothing'"),
        ("a/b/c", "no such folder: 'a/b/c'"),
        ("/nothing/here", "no such folder: '/nothing/here'"),
        (
            "org/name",
            "'org/name' \\(main\\) is no local folder, and it is not in the hub cache while the network is off",
        ),
    ],
)
def test_says_what_there_is_not(key: str, message: str) -> None:
    with pytest.raises(ModelUnavailable, match=message):
        resolve(key)


def test_a_folder_without_a_config(nowhere: Path, tmp_path: Path) -> None:
    (nowhere / "a" / "b" / "c").mkdir(parents=True)
    with pytest.raises(ModelUnavailable, match=r"the folder 'a/b/c' has no config\.json"):
        resolve("a/b/c")
    with pytest.raises(ModelUnavailable, match=r"has no config\.json"):
        resolve("org/name", weights=nowhere)
    with pytest.raises(ModelUnavailable, match="no such folder"):
        resolve("org/name", weights=tmp_path / "gone")


def test_bundled_checkpoints_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small.folder(tmp_path / "bundled" / "weekdays-tiny")
    monkeypatch.setattr(resolving, "BUNDLED_FOLDER", tmp_path / "bundled")
    assert resolve("causalab-mini/weekdays-tiny").source == "bundled"
    with pytest.raises(PlanRefusal) as caught:
        resolve("causalab-mini/weekdays-tyni")
    (problem,) = caught.value.problems
    assert problem.message == "no checkpoint 'causalab-mini/weekdays-tyni' ships with the package"
    assert problem.hint is not None
    assert problem.hint.startswith("did you mean 'causalab-mini/weekdays-tiny'?")


def test_gguf_is_not_implemented_yet(nowhere: Path) -> None:
    (nowhere / "model.gguf").write_bytes(b"")
    with pytest.raises(PlanRefusal, match=r"\.gguf files are not implemented yet"):
        resolve("model.gguf")


def test_pickled_weights_are_refused(nowhere: Path) -> None:
    path = small.folder(nowhere / "old")
    (path / "model.safetensors").rename(path / "pytorch_model.bin")
    with pytest.raises(PlanRefusal) as caught:
        resolve("old")
    (problem,) = caught.value.problems
    assert "(pytorch_model.bin)" in problem.message
    assert "nothing pickled is ever loaded" in problem.message


def test_pickled_weights_beside_safetensors_are_ignored(nowhere: Path) -> None:
    path = small.folder(nowhere / "both")
    (path / "pytorch_model.bin").write_bytes(b"")
    assert "pytorch_model.bin" not in dict(resolve("both").file_digests)


def test_weights_are_needed_only_where_they_are_asked_for(nowhere: Path) -> None:
    path = small.folder(nowhere / "light")
    (path / "model.safetensors").unlink()
    found = resolve("light")
    assert found.encode("If").length == 1
    with pytest.raises(ModelUnavailable, match=r"lacks its weights: no model\.safetensors"):
        found.weights()


def test_every_shard_has_to_be_there(nowhere: Path) -> None:
    path = small.folder(nowhere / "sharded")
    (path / "model.safetensors").rename(path / "a.safetensors")
    index = path / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}')
    with pytest.raises(ModelUnavailable, match=r"no b\.safetensors"):
        resolve("sharded").weights()
    (path / "b.safetensors").write_bytes(b"")
    assert [file.name for file in resolve("sharded").weights()] == ["a.safetensors", "b.safetensors"]


def plain(path: Path, **changes: dict[str, object]) -> Checkpoint:
    config = {**small.CONFIG, "vocab_size": small.with_bos().get_vocab_size(), **changes.get("config", {})}
    return resolve(
        str(small.folder(path, config=config, named=changes.get("named", {}), generation=changes.get("generation")))
    )


def test_end_ids_come_from_three_places(tmp_path: Path) -> None:
    assert plain(tmp_path / "a", config={"eos_token_id": 5}, named={"eos_token": "</s>"}).eos_ids == {1, 5}
    assert plain(tmp_path / "b", generation={"eos_token_id": [7, 8]}).eos_ids == {1, 7, 8}
    assert plain(tmp_path / "c", config={"eos_token_id": None}).eos_ids == frozenset()


def test_the_pad_id_is_the_first_there_is(tmp_path: Path) -> None:
    assert plain(tmp_path / "a", config={"pad_token_id": 9}, named={"pad_token": "<pad>"}).pad_id == 2
    assert plain(tmp_path / "b", config={"pad_token_id": 9}).pad_id == 9
    assert plain(tmp_path / "c", config={"eos_token_id": [6, 4]}).pad_id == 4
    assert plain(tmp_path / "d", config={"eos_token_id": None}).pad_id == 0
    assert plain(tmp_path / "e", config={"pad_token_id": 9}, named={"pad_token": "[new]"}).pad_id == 9


def test_a_token_past_the_models_vocabulary_is_refused(tmp_path: Path) -> None:
    found = plain(tmp_path / "a", named={"pad_token": "[new]"})
    with pytest.raises(PlanRefusal, match="past the model's vocabulary"):
        found.encode("If[new]")


def test_the_digest_is_of_the_files_that_matter(nowhere: Path) -> None:
    path = small.folder(nowhere / "tiny", generation={})
    (path / "README.md").write_text("not part of it")
    found = resolve("tiny")
    names = [name for name, _ in found.file_digests]
    assert names == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert dict(found.file_digests)["model.safetensors"] == sha256(b"weights").hexdigest()
    lines = "".join(f"{digest}  {name}\n" for name, digest in found.file_digests)
    assert found.digest() == sha256(lines.encode()).hexdigest()
    (path / "README.md").write_text("changed")
    assert resolve("tiny").digest() == found.digest()
    (path / "model.safetensors").write_bytes(b"other")
    assert resolve("tiny").digest() != found.digest()
