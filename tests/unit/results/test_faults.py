"""Whatever stops a run, nothing is lost and nothing stale: said again, its tree is that of a run nothing stopped.

A run of 12 points is killed, by SIGKILL in a process of its own, in the middle of a write, before or after a flush, a
rename, a removal; over and over until it is through.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.unit.results.build import experiment, observed, under

from causalab_mini.errors import OutputRefusal, RunFailure
from causalab_mini.results import files
from causalab_mini.results.store import Store

WORK = experiment(*(f"index={index}" for index in range(12)))
DOCUMENT = b'{"as": "given"}'
KILLS = 200
VALUES = {"old": 0.25, "new": 0.5}
"""What the code of that name computes."""

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def run(out: Path, code: str = "new") -> list[str]:
    """Run what is not complete; the labels that were run."""
    ran: list[str] = []
    with Store(out, WORK, DOCUMENT, under(code)) as store:
        for point in WORK.points:
            if point.label not in store.kept:
                store.write(point, (observed(point.label, value=VALUES[code]),), 0.5, 100)
                ran.append(point.label)
        record: dict[str, object] = {"digest": WORK.digest, "code": code, "partial": None}
        if ran or not store.finished(record):
            store.finish(record)
    return ran


def tree(out: Path) -> dict[str, bytes]:
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for the disk: what a kill of the process leaves does not hang on it."""
    monkeypatch.setattr(files.os, "fsync", lambda handle: None)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    found: dict[str, dict[str, bytes]] = {}
    for code in VALUES:
        out = tmp_path_factory.mktemp(code)
        run(out, code)
        found[code] = tree(out)
    return found


@contextmanager
def hooked(before: Callable[[Path | None, bytes | None], None]) -> Iterator[None]:
    """`before` is called ahead of every operation on the disk, of a write with its path and content."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in ((files.os, "replace"), (files.os, "fsync"), (Path, "unlink"), (Path, "mkdir")):
            patch.setattr(owner, name, _before(getattr(owner, name), before))
        write = Path.write_bytes

        def writes(path: Path, content: bytes) -> int:
            before(path, content)
            return write(path, content)

        patch.setattr(Path, "write_bytes", writes)
        yield


def _before(operation: Callable, before: Callable[[Path | None, bytes | None], None]) -> Callable:
    def done(*arguments: object, **named: object) -> object:
        before(None, None)
        return operation(*arguments, **named)

    return done


def killed(out: Path, operations: int, code: str = "new") -> bool:
    """Run in a process that is killed after so many operations, in the middle of a write; whether it was."""
    child = os.fork()
    if not child:
        left = operations
        write = Path.write_bytes

        def count(path: Path | None, content: bytes | None) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                if path is not None and content is not None:
                    write(path, content[: len(content) // 2])
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            with hooked(count):
                run(out, code)
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
    return os.WIFSIGNALED(status)


def operations() -> int:
    """How many operations a run of all points takes."""
    seen = 0

    def count(path: Path | None, content: bytes | None) -> None:
        nonlocal seen
        seen += 1

    import tempfile

    with tempfile.TemporaryDirectory() as folder, hooked(count):
        run(Path(folder))
    return seen


def whole(out: Path) -> set[str]:
    """The points that are complete; every file with a name is whole, and where run.json stands, so is the run."""
    for path in out.rglob("*"):
        if path.is_file() and path.suffix == ".json":
            json.loads(path.read_bytes())
        elif path.suffix == ".safetensors":
            header = int.from_bytes(path.read_bytes()[:8], "little")
            assert json.loads(path.read_bytes()[8 : 8 + header])["patched.generated"]
    complete = {json.loads(path.read_bytes())["record"]["point"] for path in out.glob(".run/points/*.json")}
    if (out / "run.json").exists():
        assert len(complete) == len(json.loads((out / "summary.json").read_bytes())) == len(WORK.points)
    return complete


def test_a_run_killed_anywhere_goes_on(tmp_path: Path, uninterrupted: dict[str, dict[str, bytes]]) -> None:
    """200 kills, each at a random operation of what is left; every few of them the run is let through."""
    drawn, most, kills, rounds = random.Random(5), operations(), 0, 0
    while kills < KILLS:
        out = tmp_path / str(rounds)
        rounds += 1
        for _ in range(drawn.randint(1, 6)):
            before = whole(out) if out.exists() else set[str]()
            kills += killed(out, drawn.randrange(most))
            assert before <= whole(out), "a complete point was lost"
        complete = whole(out)
        assert not complete & set(run(out)), "a complete point ran again"
        assert tree(out) == uninterrupted["new"]
        assert run(out) == []
    assert most > 200


def test_what_other_code_left_is_never_taken_for_this_ones(
    tmp_path: Path, uninterrupted: dict[str, dict[str, bytes]]
) -> None:
    drawn, most = random.Random(6), operations()
    for number in range(12):
        out = tmp_path / str(number)
        run(out, "old")
        killed(out, drawn.randrange(most), "new")
        shown = {path.parent.name: json.loads(path.read_bytes())[0]["value"] for path in out.glob("index=*/p.json")}
        assert len(set(shown.values())) <= 1, "numbers of two codes side by side"
        last = "old" if number % 2 else "new"
        run(out, last)
        assert tree(out) == uninterrupted[last]


@contextmanager
def room(count: int) -> Iterator[None]:
    """A disk that takes `count` bytes more, and then is full."""
    left = count
    write = Path.write_bytes

    def full(path: Path | None, content: bytes | None) -> None:
        nonlocal left
        if path is None or content is None:
            return
        left -= len(content)
        if left < 0:
            write(path, content[: max(0, len(content) + left)])
            raise OSError(28, "No space left on device", str(path))

    with hooked(full):
        yield


def test_a_disk_that_fills_is_a_failure_and_a_rerun_finishes(
    tmp_path: Path, uninterrupted: dict[str, dict[str, bytes]]
) -> None:
    size = sum(map(len, uninterrupted["new"].values()))
    for number, part in enumerate((0, 1, 5, 20, 50, 80, 95, 99)):
        out = tmp_path / str(number)
        with room(size * part // 100), pytest.raises((RunFailure, OutputRefusal), match="No space left"):
            run(out)
        complete = whole(out) if out.exists() else set[str]()
        assert not list(out.rglob("*.part"))
        assert not complete & set(run(out))
        assert tree(out) == uninterrupted["new"]


def test_a_small_disk_that_really_fills(tmp_path: Path, uninterrupted: dict[str, dict[str, bytes]]) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = (
        sys.platform == "linux"
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", disk], capture_output=True, check=False
        ).returncode
    )
    if not mounted:
        pytest.skip("no disk can be mounted here")
    try:
        with pytest.raises(RunFailure, match="No space left") as failed:
            run(disk / "out")
        assert "say the same again" in str(failed.value.hint)
        assert whole(disk / "out")
        subprocess.run(["mount", "-o", "remount,size=2m", disk], check=True)
        assert len(run(disk / "out")) < 12
        assert tree(disk / "out") == uninterrupted["new"]
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with pytest.raises(OutputRefusal, match="Read-only file system"):
            run(disk / "other")
        with pytest.raises(OutputRefusal, match="Read-only file system"):
            run(disk / "out", "old")
        assert tree(disk / "out") == uninterrupted["new"]
    finally:
        subprocess.run(["umount", disk], check=True)


def test_every_truncated_file_is_made_again(tmp_path: Path, uninterrupted: dict[str, dict[str, bytes]]) -> None:
    run(tmp_path)
    for name in ("index=3/p.json", "index=3/ids/generated.safetensors", "index=3/document.json", "summary.json"):
        content = (tmp_path / name).read_bytes()
        for size in (0, len(content) // 2, len(content) - 1):
            (tmp_path / name).write_bytes(content[:size])
            assert run(tmp_path) == (["index=3"] if name.startswith("index=3/") and "document" not in name else [])
            assert tree(tmp_path) == uninterrupted["new"]
