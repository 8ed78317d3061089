from pathlib import Path

import pytest

from causalab_mini.data import variables
from causalab_mini.data.fields import FieldPath
from causalab_mini.data.formats import Row
from causalab_mini.data.tables import Table
from causalab_mini.errors import DataRefusal

INPUT = FieldPath.parse("input")
SECOND = FieldPath.parse("cf[1]")


def table(*contents: Row) -> Table:
    return Table("d/t", contents, "0" * 64, Path("d/t.json"))


def test_the_sibling_at_the_same_rest_of_the_path_comes_first() -> None:
    row: Row = {"entity": "top", "cf_variables": [{"entity": "zero"}, {"entity": "one"}], "input": "…"}
    assert variables.lookup(table(row), SECOND, "entity") == ("one",)
    assert variables.lookup(table(row), FieldPath.parse("cf[0]"), "entity") == ("zero",)
    assert variables.lookup(table(row), INPUT, "entity") == ("top",)
    assert variables.lookup(table({"a_variables": {"b": {"v": "x"}}}), FieldPath.parse("a.b"), "v") == ("x",)
    assert variables.lookup(table({"input_variables": {"v": "x"}, "v": "y"}), INPUT, "v") == ("x",)


def test_then_the_top_level_column_row_by_row() -> None:
    first: Row = {"entity": "top", "cf_variables": [{}, {"other": "one"}]}
    second: Row = {"entity": "also", "cf_variables": [{}]}
    assert variables.lookup(table(first, second), SECOND, "entity") == ("top", "also")


def test_a_row_without_a_value_has_none() -> None:
    cells = table({"v": "x"}, {"v": None}, {"v": ""}, {"v": "  "}, {}, {"v": 12})
    assert variables.lookup(cells, INPUT, "v") == ("x", None, None, None, None, "12")


def test_an_empty_sibling_is_not_replaced_by_the_column() -> None:
    assert variables.lookup(table({"v": "top", "input_variables": {"v": None}}), INPUT, "v") == (None,)


def test_a_variable_in_neither_place_names_both() -> None:
    row: Row = {"entity": "x", "cf": ["a", "b"], "cf_variables": [{}, {"giver": "John"}]}
    with pytest.raises(DataRefusal) as caught:
        variables.lookup(table(row), SECOND, "givr")
    (problem,) = caught.value.problems
    assert (
        problem.message == "no row of 'd/t' has a variable 'givr': not in 'cf_variables[1]', and not as a column 'givr'"
    )
    assert problem.hint == "did you mean 'giver'? the variables and columns are: cf, cf_variables, entity, giver"


@pytest.mark.parametrize("cell", [True, 1.5, ["x"], {"x": 1}])
def test_a_variable_is_a_text_or_an_integer(cell: object) -> None:
    with pytest.raises(DataRefusal, match="the variable 'v' is not a text in row 1"):
        variables.lookup(table({"v": "x"}, {"v": cell}), INPUT, "v")  # pyright: ignore[reportArgumentType]
