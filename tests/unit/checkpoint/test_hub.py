from collections.abc import Callable
from pathlib import Path

import httpx
import huggingface_hub
import pytest
from huggingface_hub import errors
from tests.unit.checkpoint import small

from causalab_mini.checkpoint import hub
from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.errors import ModelUnavailable

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hub cache that holds `org/name` at `main` and at `refs/pr/1`."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    repository = tmp_path / "models--org--name"
    small.folder(repository / "snapshots" / COMMIT)
    for name in ("main", "refs/pr/1"):
        reference = repository / "refs" / name
        reference.parent.mkdir(parents=True, exist_ok=True)
        reference.write_text(COMMIT)
    return tmp_path


def no_download(*_: object, **__: object) -> str:
    raise AssertionError("nothing has to be downloaded")


@pytest.mark.parametrize("revision", ["main", "refs/pr/1", COMMIT])
def test_a_cached_checkpoint_needs_no_network(cache: Path, monkeypatch: pytest.MonkeyPatch, revision: str) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", no_download)
    found = resolve("org/name", revision, need_weights=True)
    assert (found.source, found.resolved) == ("hub", COMMIT)
    assert found.folder == cache / "models--org--name" / "snapshots" / COMMIT


@pytest.mark.parametrize("revision", ["v2", "../main", "", "a//b", "0" * 40])
def test_another_revision_is_not_there(cache: Path, revision: str) -> None:
    assert hub.cached("org/name", revision) is None


def test_a_reference_never_leaves_the_cache(cache: Path) -> None:
    (cache / "models--org--name" / "refs" / "bad").write_text("../../../elsewhere")
    assert hub.cached("org/name", "bad") is None


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert hub.cache() == Path("/home/somebody/.cache/huggingface/hub")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert hub.cache() == Path("/x/huggingface/hub")
    monkeypatch.setenv("HF_HOME", "/y")
    assert hub.cache() == Path("/y/hub")
    monkeypatch.setenv("HF_HUB_CACHE", "/z")
    assert hub.cache() == Path("/z")


@pytest.mark.parametrize(
    ("key", "can_be"),
    [
        ("gpt2", True),
        ("org/name-1.5_b", True),
        ("a/b/c", False),
        ("./a", False),
        ("a..b", False),
        ("a--b", False),
        ("", False),
    ],
)
def test_what_can_be_a_hub_id(key: str, can_be: bool) -> None:
    assert hub.is_id(key) is can_be


@pytest.mark.parametrize("name", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_offline_says_what_is_missing(cache: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", no_download)
    monkeypatch.setenv(name, "1")
    with pytest.raises(
        ModelUnavailable, match=r"'org/other' \(main\) is no local folder, and it is not in the hub cache"
    ):
        resolve("org/other")
    (cache / "models--org--name" / "snapshots" / COMMIT / "model.safetensors").unlink()
    assert resolve("org/name").depth == 4
    with pytest.raises(ModelUnavailable, match="its weights are not in the hub cache"):
        resolve("org/name", need_weights=True)


def test_downloads_no_more_than_is_needed(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def download(key: str, *, revision: str, allow_patterns: list[str]) -> str:
        asked.append(allow_patterns)
        return str(small.folder(tmp_path / "downloads" / COMMIT))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert resolve("org/new").resolved == COMMIT
    assert resolve("org/new", need_weights=True).source == "hub"
    assert [("*.safetensors" in patterns) for patterns in asked] == [False, True]
    assert all("config.json" in patterns and not any("bin" in name for name in patterns) for patterns in asked)


def response(status: int) -> httpx.Response:
    return httpx.Response(status, request=httpx.Request("GET", "https://hub.example/org/new"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: errors.GatedRepoError("gated", response=response(403)), "'org/new' needs a licence"),
        (lambda: errors.RevisionNotFoundError("none", response=response(404)), "'org/new' has no revision 'main'"),
        (
            lambda: errors.RepositoryNotFoundError("none", response=response(404)),
            "no such folder, and no such checkpoint",
        ),
        (lambda: errors.HfHubHTTPError("broken", response=response(500)), "cannot be downloaded"),
        (lambda: errors.LocalEntryNotFoundError("offline"), "cannot be downloaded"),
        (lambda: errors.HFValidationError("name"), "cannot be downloaded"),
        (lambda: httpx.ConnectError("no route"), "cannot be downloaded"),
        (lambda: OSError("disk full"), "cannot be downloaded: disk full"),
    ],
)
def test_every_failure_becomes_a_sentence(
    cache: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[], Exception], message: str
) -> None:
    def download(*_: object, **__: object) -> str:
        raise make()

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    with pytest.raises(ModelUnavailable, match=message):
        resolve("org/new")


def test_a_repository_without_a_config(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(tmp_path / "empty"))
    with pytest.raises(ModelUnavailable, match=r"'org/new' \(main\) has no config\.json"):
        resolve("org/new")
