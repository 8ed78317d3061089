"""What a finished point is kept under, and why it is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.schedules import place
from tests.unit.results.build import experiment, observe, observed, under

from causalab_mini.plan.nodes import Batch, Decoding, Experiment, Forward, Plan, Point, Read, ReadOperand, Space, Write
from causalab_mini.results.completion import sealed
from causalab_mini.results.conditions import conditions
from causalab_mini.results.layout import record_path
from causalab_mini.results.provenance import Machinery, ModelRecord
from causalab_mini.results.store import Store
from causalab_mini.spec.positions import Position
from causalab_mini.vocabulary.featurizers import Gate
from causalab_mini.vocabulary.mechanisms import Swap

MODEL = ModelRecord("some/model", "main", "hub", "abc", {"a.safetensors": "2"})
MACHINERY = Machinery("traced", "cpu", "fp32", "sdpa", None)


def on(label: str, ref: str) -> Point:
    """A point whose forwards read the rows of `ref`."""
    step = replace(observe(), forwards=(Forward("original", "base", Batch(ref, "input", ()), Decoding(0), (), ()),))
    return Point(label, (), f"digest-{label}", "{}", Plan("", (step,)))


def test_each_of_them_is_one_by_name() -> None:
    work = Experiment("e", (on("", "a/b"),), (("a/b", "table"),))
    (point,) = work.points
    base = conditions(work, MODEL, MACHINERY, "fast").of(point)
    others = {
        "the data of a/b": conditions(replace(work, tables=(("a/b", "other"),)), MODEL, MACHINERY, "fast"),
        "the model's files": conditions(work, replace(MODEL, resolved="other"), MACHINERY, "fast"),
        "--engine": conditions(work, MODEL, replace(MACHINERY, engine="hooks"), "fast"),
        "the device": conditions(work, MODEL, replace(MACHINERY, device="cuda"), "fast"),
        "the dtype": conditions(work, MODEL, replace(MACHINERY, dtype="bf16"), "fast"),
        "the attention implementation": conditions(
            work, MODEL, replace(MACHINERY, attn_implementation="eager"), "fast"
        ),
        "--batch-size": conditions(work, MODEL, replace(MACHINERY, batch_size=3), "fast"),
        "--schedule": conditions(work, MODEL, MACHINERY, "exact"),
    }
    assert set(others) <= set(base)
    assert {"the code", "torch", "transformers", "nnsight", "python"} <= set(base)
    for name, other in others.items():
        now = other.of(point)
        assert [key for key in base if base[key] != now[key]] == [name]
    assert base == conditions(work, replace(MODEL, key="other"), MACHINERY, "fast").of(point)


@pytest.mark.parametrize("written", [False, True])
def test_a_featurizer_is_one_by_its_file(written: bool) -> None:
    def held(sha256: str) -> dict[str, str]:
        space = Space("f", Gate(), 4, 4, sha256)
        site, pos = place("block_output", 1), Position(index=-1)
        read = Read("r", site, pos, ((-1,),), space=None if written else space)
        write = Write("w", site, pos, ((-1,),), Swap(), ReadOperand("v"), space=space)
        forward = Forward("m", "base", Batch("a/b", "input", ()), Decoding(0), (read,), (write,) if written else ())
        point = Point("", (), "digest", "{}", Plan("", (replace(observe(), forwards=(forward,)),)))
        return conditions(Experiment("e", (point,)), MODEL, MACHINERY, "fast").of(point)

    assert held("one")["the featurizer 'f'"] == "one"
    assert held("one") == {**held("other"), "the featurizer 'f'": "one"}


def test_a_point_depends_on_its_own_tables_alone(tmp_path: Path) -> None:
    work = Experiment("e", (on("k=1", "a/one"), on("k=2", "a/two")))
    with Store(tmp_path, work, b"{}", under("c", **{"a/one": "1", "a/two": "2"})) as store:
        for point in work.points:
            store.write(point, (observed(point.label),), 0.1)
        store.finish({})
    edited = Store(tmp_path, work, b"{}", under("c", **{"a/one": "1", "a/two": "edited"})).look()
    assert {label: found.reason for label, found in edited.items()} == {
        "k=1": "complete",
        "k=2": "changed since: the data of a/two",
    }


def test_every_reason_is_told(tmp_path: Path) -> None:
    work = experiment(*(f"index={index}" for index in range(7)))
    with Store(tmp_path, work, b"{}", under("c")) as store:
        for point in work.points[:6]:
            store.write(point, (observed(point.label),), 0.1)
        completions = store.completions()
    (tmp_path / "index=1/p.json").unlink()
    (tmp_path / "index=2/p.json").write_bytes((tmp_path / "index=2/p.json").read_bytes()[:40])
    records = [tmp_path / record_path(point.label) for point in work.points]
    records[3].write_bytes(records[3].read_bytes()[:40])
    records[4].write_bytes(sealed(completions[4].model_copy(update={"digest": "other"})))
    records[5].write_bytes(records[5].read_bytes().replace(b'"mean": 0.375', b'"mean": 0.376'))
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    found = Store(tmp_path, work, b"{}", under("c")).look()
    assert [each.reason for each in found.values()] == [
        "complete",
        "index=1/p.json is missing",
        "index=2/p.json is not as it was written",
        "its record cannot be read",
        "its document is another",
        "its record is not as it was written",
        "not run yet",
    ]
    assert Store(tmp_path, work, b"{}", under("d")).look()["index=0"].reason == "changed since: the code"
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before
    forced = Store(tmp_path, work, b"{}", under("c"), force=True).look()
    assert {each.reason for each in forced.values()} == {"--force runs all points again"}
    assert Store(tmp_path / "new", work, b"{}", under("c")).look()["index=0"].reason == "not run yet"
    assert not (tmp_path / "new").exists()


def test_a_file_that_cannot_be_read_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = experiment("index=0", "index=1", "index=2")
    with Store(tmp_path, work, b"{}", under("c")) as store:
        for point in work.points:
            store.write(point, (observed(point.label),), 0.1)
    unreadable = {tmp_path / "index=1/p.json", tmp_path / record_path("index=2")}
    reads = Path.open

    def refusing(path: Path, *arguments: object, **named: object) -> object:
        if path in unreadable:
            raise PermissionError(13, "Permission denied", str(path))
        return reads(path, *arguments, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refusing)
    found = Store(tmp_path, work, b"{}", under("c")).look()
    assert [each.reason for each in found.values()] == [
        "complete",
        "index=1/p.json is not as it was written",
        "its record cannot be read",
    ]


@pytest.mark.parametrize("many", [4, 7])
def test_a_long_list_of_changes_is_cut(tmp_path: Path, many: int) -> None:
    work = experiment("")
    with Store(tmp_path, work, b"{}", under("c")) as store:
        store.write(work.points[0], (observed(""),), 0.1)
    other = replace(under("c"), shared={"the code": "c", **{f"n{index}": "" for index in range(many)}})
    more = " and 3 more" if many == 7 else ""
    assert Store(tmp_path, work, b"{}", other).look()[""].reason == f"changed since: n0, n1, n2, n3{more}"
