"""The run's directory: whole files, kept points, one run at a time, nothing after a refusal."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path

import pytest
from safetensors import safe_open
from tests.unit.results.build import experiment, observe, observed, point, under

from causalab_mini.errors import OutputRefusal, RunFailure
from causalab_mini.plan.nodes import Experiment, Save
from causalab_mini.results import files, lock
from causalab_mini.results.lock import DirectoryLock
from causalab_mini.results.store import Store

DOCUMENT = b'{"as": "given"}'


def visible(out: Path) -> list[str]:
    found = (path.relative_to(out) for path in out.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found if path.parts[0] != ".run")


def run(
    out: Path,
    work: Experiment,
    *,
    conditions: str = "c",
    force: bool = False,
    only: int | None = None,
    document: bytes = DOCUMENT,
) -> list[str]:
    """Run what is not complete; the labels that were run. `only`: stop after so many, as a kill would."""
    ran: list[str] = []
    with Store(out, work, document, under(conditions), force=force) as store:
        for each in work.points:
            if each.label in store.kept:
                continue
            if only is not None and len(ran) == only:
                return ran
            store.write(each, tuple(observed(each.label, o.path) for o in each.plan.observes()), 0.5, 100)
            ran.append(each.label)
        store.finish({"digest": work.digest})
    return ran


def test_a_swept_run_leaves_the_promised_files(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    assert run(out, experiment("index=0", "index=1")) == ["index=0", "index=1"]
    point_files = ["document.json", "ids/generated.safetensors", "p.json"]
    assert visible(out) == sorted(
        ["document.json", "run.json", "summary.csv", "summary.json"]
        + [f"index={i}/{name}" for i in (0, 1) for name in point_files]
    )
    assert (out / "document.json").read_bytes() == DOCUMENT
    assert json.loads((out / "index=1/document.json").read_bytes()) == {"point": "index=1"}
    assert json.loads((out / "index=0/p.json").read_bytes())[0]["produced_by"] == "digest-index=0"


def test_a_run_without_a_sweep_lies_at_the_top(tmp_path: Path) -> None:
    run(tmp_path, experiment(""))
    names = ["document.json", "ids/generated.safetensors", "p.json", "run.json", "summary.csv", "summary.json"]
    assert visible(tmp_path) == names
    assert (tmp_path / "document.json").read_bytes() == DOCUMENT


def test_children_of_a_list_have_directories(tmp_path: Path) -> None:
    saves = (Save("p", "p.json"),)
    steps = observe(("score", "one"), saves), observe(("score", "two"), saves)
    run(tmp_path, Experiment("e", (point("", *steps),)))
    assert {"score/one/p.json", "score/two/p.json"} <= set(visible(tmp_path))


def test_a_bundle_holds_values_under_their_names(tmp_path: Path) -> None:
    work = experiment("")
    with Store(tmp_path, work, DOCUMENT, under("c"), stamp={"dtype": "fp32"}) as store:
        store.write(work.points[0], (observed(""),), 0.1)
    with safe_open(tmp_path / "ids/generated.safetensors", "pt") as stored:
        assert stored.keys() == ["patched.generated"]
        assert stored.get_tensor("patched.generated").tolist() == [[1, 2], [3, 4]]
        assert stored.metadata() == {"dims": "[]", "digest": "digest-", "dtype": "fp32"}


def test_complete_points_are_kept_and_summarized(tmp_path: Path) -> None:
    work = experiment("index=0", "index=1")
    assert run(tmp_path, work, only=1) == ["index=0"]
    assert not (tmp_path / "run.json").exists()
    stamp = (tmp_path / "index=0/p.json").stat().st_mtime_ns
    assert run(tmp_path, work) == ["index=1"]
    assert (tmp_path / "index=0/p.json").stat().st_mtime_ns == stamp
    assert [line["index"] for line in json.loads((tmp_path / "summary.json").read_bytes())] == [0, 1]
    assert run(tmp_path, work) == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda out: (out / "index=0/p.json").unlink(),
        lambda out: (out / "index=0/p.json").write_text("[]"),
        lambda out: [record.write_text("{}") for record in (out / ".run/points").iterdir()],
    ],
)
def test_a_point_that_is_not_as_it_was_left_is_run_again(tmp_path: Path, spoil: object) -> None:
    run(tmp_path, experiment("index=0"))
    spoil(tmp_path)  # type: ignore[operator]
    assert run(tmp_path, experiment("index=0")) == ["index=0"]


def test_a_document_that_is_not_as_it_was_left_is_written_again(tmp_path: Path) -> None:
    run(tmp_path, experiment("index=0"))
    for name in ("index=0/document.json", "document.json", "summary.csv", "run.json"):
        before = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(before[: len(before) // 2])
        assert run(tmp_path, experiment("index=0")) == []
        assert (tmp_path / name).read_bytes() == before


def test_other_conditions_run_every_point_again(tmp_path: Path) -> None:
    run(tmp_path, experiment("index=0"))
    assert run(tmp_path, experiment("index=0"), conditions="other code") == ["index=0"]
    assert run(tmp_path, experiment("index=0"), conditions="other code") == []


def test_only_a_whole_run_has_a_run_json(tmp_path: Path) -> None:
    work = experiment("index=0", "index=1")
    run(tmp_path, work)
    run(tmp_path, work, conditions="other", only=1)
    assert not {"run.json", "summary.csv", "summary.json"} & set(visible(tmp_path))


def test_another_description_keeps_the_points(tmp_path: Path) -> None:
    run(tmp_path, experiment(""))
    assert run(tmp_path, experiment(""), document=b'{"other": "header"}') == []
    assert (tmp_path / "document.json").read_bytes() == b'{"other": "header"}'


def test_another_experiment_is_refused(tmp_path: Path) -> None:
    run(tmp_path, experiment("index=0", digest="first"))
    before = visible(tmp_path)
    with pytest.raises(OutputRefusal, match="holds another experiment"):
        run(tmp_path, experiment("index=0", digest="second"))
    assert visible(tmp_path) == before


def test_force_replaces_another_experiment_and_nothing_else(tmp_path: Path) -> None:
    run(tmp_path, experiment("index=0", "index=1", digest="first"))
    (tmp_path / "index=1/notes.txt").write_text("mine")
    assert run(tmp_path, experiment("layer=0", digest="second"), force=True) == ["layer=0"]
    names = ["document.json", "ids/generated.safetensors", "p.json"]
    assert visible(tmp_path) == sorted(
        ["document.json", "index=1/notes.txt", "run.json", "summary.csv", "summary.json"]
        + [f"layer=0/{name}" for name in names]
    )


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("linked", ["layer=0", ".run", ".run/points"])
def test_nothing_is_written_or_removed_behind_a_link(tmp_path: Path, linked: str, force: bool) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "p.json").write_text("mine")
    run(out, experiment("layer=0"))
    os.rename(out / linked, tmp_path / "moved")
    (out / linked).symlink_to(elsewhere, target_is_directory=True)
    with pytest.raises(OutputRefusal, match="is a link"):
        run(out, experiment("layer=0"), force=force)
    assert [(path.name, path.read_text()) for path in elsewhere.iterdir()] == [("p.json", "mine")]


@pytest.mark.parametrize("linked", [".run/lock", "layer=0/.p.json.part"])
def test_no_file_is_written_through_a_link(tmp_path: Path, linked: str) -> None:
    out, mine = tmp_path / "out", tmp_path / "mine"
    run(out, experiment("layer=0"))
    (out / "layer=0/p.json").unlink()
    (out / linked).unlink(missing_ok=True)
    (out / linked).symlink_to(mine)
    with contextlib.suppress(OutputRefusal):
        run(out, experiment("layer=0"))
    assert not mine.exists()
    assert not (out / "layer=0/p.json").is_symlink()


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("layer=1/p.json", None, "is a directory, and a run writes a file there"),
        ("summary.csv", None, "is a directory, and a run writes a file there"),
        (".run/lock", None, "is a directory, and a run writes a file there"),
        ("layer=1", "mine", "is a file, and a run makes a directory there"),
        (".run/points", "mine", "is a file, and a run makes a directory there"),
    ],
)
def test_what_cannot_be_replaced_is_refused_before_anything_is_lost(
    tmp_path: Path, name: str, content: str | None, message: str, force: bool
) -> None:
    work = experiment("layer=0", "layer=1")
    run(tmp_path, work)
    path = tmp_path / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.mkdir() if content is None else path.write_text(content)
    before = visible(tmp_path)
    with pytest.raises(OutputRefusal, match=message):
        run(tmp_path, work, force=force)
    with pytest.raises(OutputRefusal, match=message):
        Store(tmp_path, work, DOCUMENT, under("c"), force=force).look()
    assert visible(tmp_path) == before


@pytest.mark.parametrize("force", [False, True])
def test_a_directory_whose_owner_is_damaged_is_refused(tmp_path: Path, force: bool) -> None:
    run(tmp_path, experiment("index=0", digest="first"))
    (tmp_path / ".run/owner.json").write_text('{"format"')
    before = visible(tmp_path)
    with pytest.raises(OutputRefusal, match="does not say which files"):
        run(tmp_path, experiment("layer=0", digest="second"), force=force)
    assert visible(tmp_path) == before


def test_force_runs_complete_points_again(tmp_path: Path) -> None:
    run(tmp_path, experiment("index=0"))
    assert run(tmp_path, experiment("index=0"), force=True) == ["index=0"]


def test_force_that_fails_at_once_loses_nothing(tmp_path: Path) -> None:
    run(tmp_path, experiment("index=0", digest="first"))
    before = visible(tmp_path)
    with pytest.raises(ZeroDivisionError), Store(tmp_path, experiment("", digest="b"), b"{}", under("c"), force=True):
        raise ZeroDivisionError
    assert visible(tmp_path) == before


def test_files_of_nobody_are_refused_and_survive_force(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputRefusal, match="no run wrote"):
        run(tmp_path, experiment(""))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["thesis.tex"]
    run(tmp_path, experiment(""), force=True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    for place in (tmp_path / "out", tmp_path / "out" / "below"):
        with pytest.raises(OutputRefusal):
            run(place, experiment(""))


def test_a_look_refuses_what_a_run_could_not_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    run(tmp_path / "ran", experiment(""))
    for place in ("file/below", "link", "x" * 300):
        for refused in (lambda out: run(out, experiment("")), lambda out: look(out)):
            with pytest.raises(OutputRefusal, match="cannot be written to"):
                refused(tmp_path / place)
    look(tmp_path / "a" / "b")
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    for place in ("ran", "a/b", "."):
        with pytest.raises(OutputRefusal, match="cannot be written to: Permission denied"):
            look(tmp_path / place, force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link", "ran"]


def look(out: Path, *, force: bool = False) -> None:
    Store(out, experiment(""), DOCUMENT, under("c"), force=force).look()


def test_force_removes_nothing_outside_the_directory(tmp_path: Path) -> None:
    """Whatever the list of an earlier run's files has come to say."""
    out, mine = tmp_path / "out", tmp_path / "mine.txt"
    run(out, experiment("index=0", digest="first"))
    mine.write_text("mine")
    owner = json.loads((out / ".run/owner.json").read_bytes())
    owner["files"] += ["../mine.txt", str(mine), "index=0/../../mine.txt"]
    (out / ".run/owner.json").write_text(json.dumps(owner))
    run(out, experiment("index=0", digest="second"), force=True)
    assert mine.read_text() == "mine"


def test_a_directory_that_another_run_takes_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was nobody's at the first look, and is another experiment's when the lock is had."""
    take = DirectoryLock.take

    def late(lock: DirectoryLock) -> bool:
        monkeypatch.undo()
        run(tmp_path, experiment("index=0", digest="first"))
        return take(lock)

    monkeypatch.setattr(DirectoryLock, "take", late)
    with pytest.raises(OutputRefusal, match="holds another experiment"):
        run(tmp_path, experiment("index=0", digest="second"))
    assert json.loads((tmp_path / "run.json").read_bytes()) == {"digest": "first"}


def test_a_lock_whose_file_is_gone_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that leaves nothing removes its lock; who had opened the file before would lock what nobody sees."""
    path = tmp_path / "lock"
    held = lock.fcntl.flock

    def going(handle: int, how: int) -> None:
        path.unlink()
        held(handle, how)

    monkeypatch.setattr(lock.fcntl, "flock", going)
    assert not DirectoryLock(path).take()
    monkeypatch.undo()
    assert DirectoryLock(path).take()


def test_two_runs_cannot_share_a_directory(tmp_path: Path) -> None:
    work = experiment("index=0")
    with Store(tmp_path, work, DOCUMENT, under("c")) as first:
        with pytest.raises(OutputRefusal, match="another run is writing"), Store(tmp_path, work, DOCUMENT, under("c")):
            pass
        first.write(work.points[0], (observed("index=0"),), 0.1)
    assert run(tmp_path, work) == []


def test_a_refused_or_failed_start_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    with pytest.raises(ZeroDivisionError), Store(out, experiment(""), DOCUMENT, under("c")):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    out.mkdir(parents=True)
    with pytest.raises(ZeroDivisionError), Store(out, experiment(""), DOCUMENT, under("c")):
        raise ZeroDivisionError
    assert list(out.iterdir()) == []


def test_a_label_too_long_for_a_file_system_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputRefusal, match="too long"):
        run(tmp_path / "out", experiment("index=" + "1" * 300))
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_on_the_disk_before_it_has_its_name_and_so_is_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a machine that goes down leaves hangs on it."""
    told: list[tuple[str, str]] = []
    opened: dict[int, str] = {}
    opens, renames = os.open, os.replace

    def opening(path: Path, flags: int) -> int:
        handle = opens(path, flags)
        opened[handle] = Path(path).name
        return handle

    def renaming(source: Path, target: Path) -> None:
        told.append(("rename", target.name))
        renames(source, target)

    monkeypatch.setattr(files.os, "open", opening)
    monkeypatch.setattr(files.os, "fsync", lambda handle: told.append(("flush", opened[handle])))
    monkeypatch.setattr(files.os, "replace", renaming)
    files.write_bytes(tmp_path / "index=0/p.json", b"[]")
    assert told == [("flush", ".p.json.part"), ("rename", "p.json"), ("flush", "index=0")]


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("survivors", range(7))
def test_a_kill_between_write_and_rename_leaves_no_named_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survivors: int
) -> None:
    """The process ends just before the nth rename: what has a name is whole, and the next run makes the rest."""
    renames = 0
    rename = os.replace

    def killing(source: Path, target: Path) -> None:
        nonlocal renames
        if renames == survivors:
            raise Killed
        renames += 1
        rename(source, target)

    monkeypatch.setattr(files.os, "replace", killing)
    with pytest.raises(Killed):
        run(tmp_path, experiment("index=0"))
    monkeypatch.undo()
    assert len([path for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"]) == survivors
    for path in tmp_path.rglob("*.json"):
        json.loads(path.read_bytes())
    assert run(tmp_path, experiment("index=0")) == ([] if survivors >= 6 else ["index=0"])


def test_what_a_kill_leaves_beside_is_overwritten(tmp_path: Path) -> None:
    leftover = files.partial_name(tmp_path / "index=0/p.json")
    leftover.parent.mkdir()
    leftover.write_bytes(b"half")
    with pytest.raises(OutputRefusal):
        run(tmp_path, experiment("index=0"))
    run(tmp_path, experiment("index=0"), force=True)
    assert not leftover.exists()


def test_a_step_that_brought_nothing_is_a_failure(tmp_path: Path) -> None:
    work = experiment("")
    with Store(tmp_path, work, DOCUMENT, under("c")) as store, pytest.raises(RunFailure, match="brought nothing"):
        store.write(work.points[0], (), 0.1)


def test_a_full_disk_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = experiment("")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "p.json")

    with Store(tmp_path, work, DOCUMENT, under("c")) as store:
        monkeypatch.setattr(files.os, "replace", full)
        with pytest.raises(RunFailure, match="No space left"):
            store.write(work.points[0], (observed(""),), 0.1)
