"""What only rows and a checkpoint tell: each refusal once, at its place, naming the rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.building import document, generated, intervention, observing, read, rows, step, write, write_table
from tests.desk import Desk

from causalab_mini.errors import Problem

WORD = {"variable": "word"}
SCOPED = {"index": -1, "scope": WORD}
COLUMNS = {
    "word": ["Thursday", "Friday", "nowhere"],
    "wide": ["today is Thursday", "Friday", "Wednesday, I"],
    "good": [" Friday", " Saturday", " Thursday"],
    "also": [" Friday", " Sunday", " Monday"],
    "long": [" Friday", " a long answer", " another one"],
    "number": [3, 5, 9999],
}
READS, WRITES, METRICS = (f"interventions.one.{section}" for section in ("reads", "writes", "metrics"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("compile")
    write_table(root, rows(**COLUMNS))
    write_table(root, rows(["One more row", "and then", "a third", "and a fourth"]), "own/four")
    return root


@pytest.fixture
def desk(root: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world("llama", 16).over(root)


def only(desk: Desk, asked: dict) -> Problem:
    (problem,) = desk.problems(asked)
    return problem


def one(reads: dict, writes: dict | None = None, decode: int = 0, metrics: dict | None = None) -> dict:
    return observing(intervention(reads, writes, metrics=metrics, decode=decode))


def test_a_cut_that_does_not_fit_names_the_rows_and_their_lengths(desk: Desk) -> None:
    lengths = [desk.checkpoint.encode(row["input"]).length for row in rows()]
    problem = only(desk, one({"x": read("head", 5)}))
    assert problem.path == f"{READS}.x.pos"
    assert f"{{index:5}} does not fit 1 of 3 rows of own/rows: 'row-1' ({lengths[1]} tokens)" in problem.message
    problem = only(desk, one({"x": read("head", 99)}))
    assert all(f"'row-{i}' ({length} tokens)" in problem.message for i, length in enumerate(lengths))


def test_an_operand_that_does_not_fit_is_one_problem(desk: Desk) -> None:
    """The write that uses it is not blamed as well, and neither is a write that does not fit itself."""
    reads = {"v": read("out0", 5), "x": read("head", -1, "m")}
    assert only(desk, one(reads, {"w": write("out0", -1, "swap", "v")})).path == f"{READS}.v.pos"
    reads = {"v": read("out0"), "x": read("head", -1, "m")}
    assert only(desk, one(reads, {"w": write("out0", 5, "swap", "v")})).path == f"{WRITES}.w.pos"
    both = desk.problems(one({"v": read("out0", 5), "x": read("head", -1, "m")}, {"w": write("out0", 5, "swap", "v")}))
    assert [problem.path for problem in both] == [f"{READS}.v.pos", f"{WRITES}.w.pos"]


def test_a_write_that_lands_nowhere_says_which_rows_and_why(desk: Desk) -> None:
    problem = only(desk, one({"x": read("head", -1, "m")}, {"w": write("out0", SCOPED, "add_scaled", 1.0)}))
    assert problem.path == f"{WRITES}.w.pos"
    assert "lands nowhere on 1 of 3 rows ('row-2': alignment_missing)" in problem.message
    assert '"missing": "skip"' in (problem.hint or "")


def test_a_row_whose_operand_has_no_value_is_nowhere_too(desk: Desk) -> None:
    reads = {"v": read("out0", SCOPED), "x": read("head", -1, "m")}
    problem = only(desk, one(reads, {"w": write("out0", -1, "swap", "v")}))
    assert problem.path == f"{WRITES}.w.operand"
    assert "operand 'v' at {index:-1 scope:{variable:word}} has no value on 1 of 3 rows" in problem.message
    assert "'row-2': alignment_missing" in problem.message
    assert '"missing": "skip"' in (problem.hint or "")
    # A row that is lost either way is told once, at the write's own position.
    problem = only(desk, one(reads, {"w": write("out0", SCOPED, "swap", "v")}))
    assert problem.path == f"{WRITES}.w.pos"


def test_a_chained_operand_of_a_skipped_row_is_nowhere(desk: Desk) -> None:
    writes = {
        "w": write("out0", SCOPED, "add_scaled", 1.0, missing="skip"),
        "u": write("out0", -1, "swap", "v"),
    }
    models = {"m": {"input": "base", "writes": ["w"]}, "n": {"input": "base", "writes": ["u"]}}
    reads = {"v": read("out1", -1, "m"), "x": read("head", -1, "n")}
    problem = only(desk, observing(intervention(reads, writes, models)))
    assert problem.path == f"{WRITES}.u.operand"
    assert "'row-2': write_skipped" in problem.message


def test_operands_of_another_width_name_the_row(desk: Desk) -> None:
    wide = {"all": True, "scope": {"variable": "wide"}}
    reads = {"v": read("out0", wide), "x": read("head", -1, "m")}
    problem = only(desk, one(reads, {"w": write("out0", {"last": 2}, "swap", "v")}))
    assert problem.path == f"{WRITES}.w.operand"
    assert "on row 'row-0' the operand has 3 tokens and the write 2" in problem.message


def test_an_operand_known_only_when_all_is_said(desk: Desk) -> None:
    said = generated(index=-1, scope=WORD)
    reads = {"v": read("out0", said), "x": read("head", -1, "m")}
    problem = only(desk, one(reads, {"w": write("out0", -1, "swap", "v")}, decode=2))
    assert problem.path == f"{WRITES}.w.operand"
    assert "{generated index:-1 scope:{variable:word}}" in problem.message


def two(reduce: str, source: dict, second: str = "own/rows", missing: str = "refuse", decode: int = 0) -> dict:
    give = intervention({"v": source}, decode=decode)
    take = intervention({"x": read("head", -1, "m")}, {"w": write("out0", -1, "swap", {"ref": "V"}, missing=missing)})
    return document(
        {"one": step("give", outputs={"V": {"read": "v", "reduce": reduce}}), "two": step("one", second)},
        {"give": give, "one": take},
    )


def test_a_reference_row_by_row_needs_the_same_rows(desk: Desk) -> None:
    problem = only(desk, two("none", read("out0"), "own/four"))
    assert problem.path == f"{WRITES}.w.operand"
    assert "'V' has 3 rows and this step has 4" in problem.message
    desk.compile(two("mean", read("out0"), "own/four"))


def test_a_reference_to_a_row_without_a_value(desk: Desk) -> None:
    problem = only(desk, two("none", read("out0", SCOPED)))
    assert problem.path == f"{WRITES}.w.operand"
    assert "operand 'V' at {index:-1 scope:{variable:word}} has no value" in problem.message
    assert "'row-2': alignment_missing" in problem.message
    desk.compile(two("none", read("out0", SCOPED), missing="skip"))
    desk.compile(two("mean", read("out0", SCOPED)))


def test_a_mean_of_no_rows_is_no_operand(desk: Desk) -> None:
    nowhere = {"index": 50, "scope": WORD}
    problem = only(desk, two("mean", read("out0", nowhere)))
    assert "has no value on 3 of 3 rows, so the write lands nowhere there ('row-0': out_of_range" in problem.message
    desk.compile(two("mean", read("out0", nowhere), missing="skip"))


def test_a_reference_known_only_when_all_is_said(desk: Desk) -> None:
    said = read("out0", generated(index=-1, scope=WORD))
    problem = only(desk, two("none", said, decode=2))
    assert problem.path == f"{WRITES}.w.operand"
    assert "reduce" in (problem.hint or "")
    desk.compile(two("mean", said, decode=2))


def test_a_reference_to_a_step_with_problems_is_not_blamed(desk: Desk) -> None:
    assert only(desk, two("none", read("out0", 50))).path == "interventions.give.reads.v.pos"


def test_a_layer_past_the_depth(desk: Desk) -> None:
    asked = one({"x": read("deep")})
    asked["sites"] = {**asked["sites"], "deep": {"component": "block_output", "layers": 3}}
    problem = only(desk, asked)
    assert problem.path == "sites.deep.layers"
    assert "layer 3 is past the depth" in problem.message
    assert problem.hint == "layers are 0 to 2"


def test_a_feature_past_the_width(desk: Desk) -> None:
    asked = one({"x": read("head", -1, "m")}, {"w": write("out0", -1, "swap", 0.0, features=[2, 16])})
    problem = only(desk, asked)
    assert problem.path == f"{WRITES}.w.features"
    assert "feature 16 is past the width 16" in problem.message


def prob(column: str, **more: object) -> dict:
    return {"p": {"kind": "token_prob", "of": "x", "token": column, **more}}


def test_an_answer_of_several_tokens_shows_them(desk: Desk) -> None:
    problem = only(desk, one({"x": read("head")}, metrics=prob("long")))
    assert problem.path == f"{METRICS}.p.token"
    assert "row 'row-1'" in problem.message
    ids = desk.world.tokenizer(" a long answer", add_special_tokens=False)["input_ids"]
    assert f"is {len(ids)} tokens" in problem.message
    assert all(f"({token})" in problem.message for token in ids)
    assert "(and 1 rows more)" in problem.message


def test_an_id_past_the_vocabulary(desk: Desk) -> None:
    problem = only(desk, one({"x": read("head")}, metrics=prob("number", token_form="id")))
    assert "9999" in problem.message


def test_more_likely_tokens_than_there_are(desk: Desk) -> None:
    most = desk.checkpoint.vocab
    problem = only(desk, one({"x": read("head")}, metrics={"t": {"kind": "top_k", "of": "x", "k": most + 1}}))
    assert problem.path == f"{METRICS}.t.k"
    assert problem.message == f"k is {most + 1}, and there are {most} tokens"
    desk.compile(one({"x": read("head")}, metrics={"t": {"kind": "top_k", "of": "x", "k": most}}))


def test_a_difference_of_a_token_with_itself(desk: Desk) -> None:
    metric = {"d": {"kind": "logit_diff", "of": "x", "a": "good", "b": "also"}}
    problem = only(desk, one({"x": read("head")}, metrics=metric))
    assert problem.path == f"{METRICS}.d"
    assert "'row-0' (' Friday')" in problem.message
    assert "row-1" not in problem.message


def test_a_column_that_no_row_has(desk: Desk) -> None:
    problem = only(desk, one({"x": read("head")}, metrics=prob("goood")))
    assert problem.path == f"{METRICS}.p.token"
    assert "no row of 'own/rows' has a column 'goood'" in problem.message
    assert "good" in (problem.hint or "")


def test_a_variable_that_no_row_has(desk: Desk) -> None:
    problem = only(desk, one({"x": read("head", {"index": 0, "scope": {"variable": "wrd"}})}))
    assert problem.path == f"{READS}.x.pos"
    assert "'input_variables'" in problem.message
    assert "'wrd'" in problem.message


def test_roles_of_unequal_length(desk: Desk) -> None:
    asked = observing(intervention({"x": read("head"), "y": read("head", role="other")}))
    asked["steps"]["only"]["rows"] = {"base": "own/rows", "other": "own/four"}
    problem = only(desk, asked)
    assert problem.path == "steps.only.rows"
    assert "'base' has 3" in problem.message
    assert "'other' has 4" in problem.message


def test_a_missing_table_names_the_step_and_role(desk: Desk) -> None:
    problem = only(desk, observing(intervention({"x": read("head")}), "own/nothing"))
    assert problem.path == "steps.only.rows.base"


def test_problems_of_all_points_and_steps_come_at_once_each_once(desk: Desk) -> None:
    where = {"index": {"sweep": [-1, 5, 50], "as": "at"}}
    body = intervention({"x": read("head", where), "y": read("out0", 60)}, metrics=prob("long"))
    problems = desk.problems(document({"first": step("one"), "second": step("one")}, {"one": body}))
    assert [problem.path for problem in problems] == [
        f"{METRICS}.p.token",
        f"{READS}.x.pos",
        f"{READS}.x.pos",
        f"{READS}.y.pos",
    ]


def test_a_prompt_that_ends_in_a_space_is_warned_about(desk: Desk, tmp_path: Path) -> None:
    there = desk.over(write_table(tmp_path, rows(["Friday is", "Sunday is ", "Monday is"])))
    (warning,) = there.compile(one({"x": read("head")})).warnings
    assert "row 'row-1'" in warning
    assert "ends in a space" in warning
    there = desk.over(write_table(tmp_path, rows([f"{number} is " for number in range(7)])))
    (warning,) = there.compile(one({"x": read("head")})).warnings
    five = ", ".join(f"'row-{number}'" for number in range(5))
    assert warning.startswith(f"own/rows, rows {five} and 2 more, input: the prompt ends in a space")


SPACED = (
    "own/rows, input: 2 of 3 prompts end in '\\n', and the answers of 'good' that are looked up there have a space put "
    'before them; "token_form": "bare" takes them as they stand'
)


@pytest.mark.parametrize(
    ("pos", "form", "warned"),
    [
        (-1, "space_prefixed", (SPACED,)),
        ({"last": 1}, "space_prefixed", (SPACED,)),
        ({"frame": "generated", "index": 0}, "space_prefixed", (SPACED,)),
        ({"frame": "generated", "index": 1}, "space_prefixed", ()),
        (0, "space_prefixed", ()),
        (-1, "bare", ()),
    ],
)
def test_a_space_before_an_answer_that_follows_white_space_is_warned_about(
    pos: object, form: str, warned: tuple[str, ...], desk: Desk, tmp_path: Path
) -> None:
    """A chat template mostly ends in a line break, after which a model says the answer without a space."""
    texts = ["Friday is\n", "Sunday is", "Monday is\n"]
    there = desk.over(write_table(tmp_path, rows(texts, good=[" Friday", " Monday", " Sunday"])))
    metrics = {"p": {**prob("good")["p"], "token_form": form}}
    asked = one({"x": read("head", pos)}, metrics=metrics, decode=2)
    assert there.compile(asked).warnings == warned


def test_answers_come_from_base_rows(desk: Desk, tmp_path: Path) -> None:
    """A read of the other role is scored with the answers in the rows bound to `base`."""
    write_table(tmp_path, rows(good=[" Friday", " Monday", " Sunday"]))
    write_table(tmp_path, rows(good=[" Sunday", " Friday", " Monday"]), "own/other")
    there = desk.over(tmp_path)
    asked = observing(intervention({"x": read("head"), "y": read("head", role="other")}, metrics=prob("good")))
    asked["interventions"]["one"]["metrics"]["q"] = {"kind": "token_prob", "of": "y", "token": "good"}
    asked["steps"]["only"]["rows"] = {"base": "own/rows", "other": "own/other"}
    (observe,) = there.compile(asked).points[0].plan.observes()
    friday, monday, sunday = (
        there.world.tokenizer(f" {day}", add_special_tokens=False)["input_ids"][0]
        for day in ("Friday", "Monday", "Sunday")
    )
    assert [score.answers for score in observe.scores] == [(("token", (friday, monday, sunday)),)] * 2
