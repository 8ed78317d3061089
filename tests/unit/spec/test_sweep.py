import pytest

from causalab_mini.errors import SweepRefusal
from causalab_mini.spec.sweep import expand, survey


def labels(document: dict) -> list[str]:
    return [point.label for point in expand(document).points()]


def test_nothing_swept_is_one_point_without_a_label():
    (point,) = expand({"sites": {"a": 1}}).points()
    assert (point.label, point.axes, point.value) == ("", (), {"sites": {"a": 1}})
    assert not expand({"sites": {}}).swept


def test_axes_cross_in_reading_order_the_first_slowest():
    document = {"b": {"x": {"sweep": [1, 2]}}, "a": {"y": {"sweep": ["u", "v", "w"]}}}
    assert labels(document) == ["x=1,y=u", "x=1,y=v", "x=1,y=w", "x=2,y=u", "x=2,y=v", "x=2,y=w"]


def test_one_axis_moves_its_wrappers_together():
    document = {"a": {"x": {"sweep": [1, 2], "as": "s"}}, "b": {"y": {"sweep": [[3], [4]], "as": "s"}}}
    points = list(expand(document).points())
    assert [point.label for point in points] == ["s=1", "s=2"]
    assert [point.value for point in points] == [{"a": {"x": 1}, "b": {"y": [3]}}, {"a": {"x": 2}, "b": {"y": [4]}}]
    assert points[1].axes == (("s", 2),)


def test_ranges_stop_before_their_end():
    assert labels({"a": {"x": {"sweep": {"range": [-2, 3, 2]}}}}) == ["x=-2", "x=0", "x=2"]
    assert labels({"a": {"x": {"sweep": {"range": [3, 0, -1]}}}}) == ["x=3", "x=2", "x=1"]


def test_inside_a_list_the_axis_is_the_lists_key():
    document = {"sites": {"a": {"layers": [{"sweep": [0, 1]}]}}}
    points = list(expand(document).points())
    assert [point.label for point in points] == ["layers=0", "layers=1"]
    assert points[1].value == {"sites": {"a": {"layers": [1]}}}


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0, "0"),
        (-3, "-3"),
        (0.5, "0.5"),
        (1e-5, "1e-05"),
        (1e30, "1e+30"),
        (True, "true"),
        (None, "null"),
        ("mlp_output", "mlp_output"),
        ("a b/c", "a_b_c"),
        ("..", ".."),
        ("", ""),
        ("é", "é"),
        ([3], "3"),
        ([[3]], "3"),
        (["a b"], "a_b"),
        ([1, 2], "_1_2_"),
        ([], "__"),
        ({"index": 0}, "__index__0_"),
    ],
)
def test_how_values_print(value: object, printed: str):
    assert labels({"a": {"x": {"sweep": [value]}}}) == [f"x={printed}"]


def test_a_wrapper_may_stand_for_a_whole_part():
    points = list(expand({"sites": {"sweep": [{"a": 1}, {"b": 2}]}}).points())
    assert [point.value for point in points] == [{"sites": {"a": 1}}, {"sites": {"b": 2}}]


def test_a_part_may_be_called_sweep():
    assert labels({"sites": {"sweep": {"component": "lm_head"}}}) == [""]
    assert labels({"rows": {"sweep": "a/b"}}) == [""]
    assert labels({"roles": {"sweep": {"field": "x"}, "base": {"field": "y"}}}) == [""]


def test_the_number_of_points_is_bounded_before_anything_is_made():
    full = {"a": {"x": {"sweep": {"range": [0, 100]}}, "y": {"sweep": {"range": [0, 100]}}}}
    assert expand(full).count == 10_000
    full["a"]["z"] = {"sweep": [1, 2]}
    with pytest.raises(SweepRefusal, match=r"20,000 points \(x: 100 x y: 100 x z: 2\)"):
        expand(full)


def test_points_share_what_their_setting_does_not_touch():
    document = {"same": {"k": [1]}, "a": {"x": {"sweep": [1, 2]}}, "b": {"y": {"sweep": [3, 4]}}}
    points = list(expand(document).points())
    assert points[0].value["same"] is points[3].value["same"] is document["same"]
    assert points[0].value["a"] is points[1].value["a"]
    assert points[0].value["b"] is points[2].value["b"]


def test_a_survey_keeps_the_rest_beside_the_problems():
    found = survey({"a": {"x": {"sweep": []}, "y": {"sweep": [7, 8]}}})
    assert [problem.path for problem in found.problems] == ["a.x.sweep"]
    assert found.first()["a"]["y"] == 7
