from pathlib import Path

import pytest

from causalab_mini.data import refs
from causalab_mini.data.refs import Ref
from causalab_mini.errors import DataRefusal


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "datasets"
    (folder / "weekdays" / "deep").mkdir(parents=True)
    for name in ("weekdays/train", "weekdays/said", "weekdays/deep/full"):
        (folder / f"{name}.json").write_text("[{}]")
    return folder


def test_a_reference_is_a_table_and_perhaps_a_split() -> None:
    assert refs.parse("weekdays/train") == Ref(("weekdays", "train"), None)
    assert refs.parse("weekdays/data#test") == Ref(("weekdays", "data"), "test")
    assert refs.parse("a/b/c#x#y") == Ref(("a", "b", "c"), "x#y")


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        ("", "'' is not dir/table"),
        ("weekdays", "'weekdays' is not dir/table"),
        ("weekdays/", "'weekdays/' is not dir/table"),
        ("a//b", "'a//b' is not dir/table"),
        ("a/./b", "'a/./b' is not dir/table"),
        ("a/ /b", "'a/ /b' is not dir/table"),
        ("../secrets/keys", "climbs out of the data root"),
        ("weekdays/../../keys", "climbs out of the data root"),
        ("/etc/passwd", "is an absolute path"),
        ("C:/tables/x", "is an absolute path"),
        ("weekdays\\train", "holds a character no reference may have"),
        ("weekdays/tr\0ain", "holds a character no reference may have"),
        ("weekdays/train#", "names no split after '#'"),
    ],
)
def test_refuses_what_is_no_reference(ref: str, message: str) -> None:
    with pytest.raises(DataRefusal) as caught:
        refs.parse(ref)
    (problem,) = caught.value.problems
    assert message in problem.message
    assert problem.path == ""


def test_finds_a_table_at_any_depth(root: Path) -> None:
    assert refs.locate(refs.parse("weekdays/train"), root) == root / "weekdays" / "train.json"
    assert refs.locate(refs.parse("weekdays/deep/full"), root) == root / "weekdays" / "deep" / "full.json"


def test_a_missing_table_names_the_nearest(root: Path) -> None:
    with pytest.raises(DataRefusal) as caught:
        refs.locate(refs.parse("weekdays/trian"), root)
    (problem,) = caught.value.problems
    assert problem.message.startswith("there is no table 'weekdays/trian'")
    assert problem.hint is not None
    assert problem.hint.startswith("did you mean 'weekdays/train'?")
    assert "weekdays/deep/full, weekdays/said, weekdays/train" in problem.hint


def test_a_missing_root_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataRefusal, match="there is no data root"):
        refs.locate(refs.parse("a/b"), tmp_path / "nowhere")


def test_an_ending_is_left_out(root: Path) -> None:
    with pytest.raises(DataRefusal) as caught:
        refs.locate(refs.parse("weekdays/train.json"), root)
    assert caught.value.problems[0].hint == "leave the ending out: 'weekdays/train'"


@pytest.mark.parametrize("ending", refs.ENDINGS)
def test_a_table_has_one_of_four_endings(root: Path, ending: str) -> None:
    (root / "weekdays" / f"other{ending}").write_text("")
    assert refs.locate(refs.parse("weekdays/other"), root).name == f"other{ending}"
    assert "weekdays/other" in refs.tables(root)
    with pytest.raises(DataRefusal) as caught:
        refs.locate(refs.parse(f"weekdays/other{ending}"), root)
    assert caught.value.problems[0].hint == "leave the ending out: 'weekdays/other'"


def test_two_files_of_one_name_are_refused(root: Path) -> None:
    (root / "weekdays" / "train.csv").write_text("")
    (root / "weekdays" / "train.parquet").write_text("")
    with pytest.raises(DataRefusal) as caught:
        refs.locate(refs.parse("weekdays/train"), root)
    (problem,) = caught.value.problems
    assert problem.message == (
        "'weekdays/train' is more than one table: 'train.json' and 'train.csv' and 'train.parquet'"
    )


def test_a_link_may_not_leave_the_root(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("[{}]")
    (root / "weekdays" / "link.json").symlink_to(tmp_path / "secret.json")
    (root / "door").symlink_to(tmp_path)
    for ref in ("weekdays/link", "door/secret"):
        with pytest.raises(DataRefusal, match="is a link that leaves the data root"):
            refs.locate(refs.parse(ref), root)


def test_a_link_inside_the_root_and_a_linked_root_are_fine(root: Path, tmp_path: Path) -> None:
    (root / "weekdays" / "same.json").symlink_to(root / "weekdays" / "train.json")
    (tmp_path / "alias").symlink_to(root)
    assert refs.locate(refs.parse("weekdays/same"), tmp_path / "alias").is_file()
