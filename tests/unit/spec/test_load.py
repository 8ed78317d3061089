import json
from pathlib import Path

import pytest
from tests.unit.spec.build import GONE, changed, document, loaded, paths, problems

from causalab_mini.errors import PlanRefusal, Problem, ReferenceRefusal, SchemaRefusal, SweepRefusal, SyntaxRefusal
from causalab_mini.spec.document import Intervention, Ref

SHIPPED = sorted(Path("documents").glob("*/*.json"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_document_is_fine(path: Path):
    text = path.read_bytes()
    assert problems(text) == []
    assert all(point.document.header.description for point in loaded(text).points)


def test_the_trial_document_has_three_points():
    trial = loaded(Path("documents/v2/generate_probe.json").read_bytes())
    assert trial.swept
    assert [point.label for point in trial.points] == ["index=0", "index=1", "index=2"]
    assert [point.axes for point in trial.points] == [(("index", 0),), (("index", 1),), (("index", 2),)]
    reads = [point.document.interventions["interchange"].reads for point in trial.points]
    assert [read["logits"].pos.index for read in reads] == [0, 1, 2]
    assert reads[0]["v_cf"] is reads[2]["v_cf"]
    lowered = trial.points[2].lowered
    assert lowered["interventions"]["interchange"]["reads"]["logits"]["pos"] == {"frame": "generated", "index": 2}
    assert len({point.digest for point in trial.points}) == 3


def test_a_lowered_point_loads_to_itself():
    for point in loaded(Path("documents/v2/generate_steer.json").read_bytes()).points:
        again = loaded(point.lowered)
        assert not again.swept
        assert again.points[0].digest == again.digest == point.digest
        assert again.points[0].document == point.document
        assert again.points[0].label == ""


@pytest.mark.parametrize(
    "edits",
    [
        [("$schema", "x.json"), ("format", "causalab-mini/1"), ("header", {"description": "why"})],
        [("steps.score.interventions", GONE)],
        [("steps.score.interventions", GONE), ("steps.score.intervention", "swap")],
        [("steps.score.interventions", ["swap"])],
        [("steps.score.interventions", document()["interventions"]["swap"])],
        [("steps.score.interventions", document()["interventions"]["swap"]), ("interventions", GONE)],
        [("steps.score.rows.counterfactual", "weekdays/train#test")],
        [("interventions.swap.writes.patch.operand", 0)],
        [("interventions.swap.writes.patch.operand", -1.5)],
        [("interventions.swap.writes.patch.features", [0, 3])],
        [("interventions.swap.writes.patch.pos", {"last": 3})],
        [("interventions.swap.writes.patch.pos", {"frame": "generated", "all": True})],
        [("interventions.swap.writes.patch.pos", {"frame": "generated", "span": [1, 3]})],
        [("interventions.swap.writes.patch.pos", {"all": True, "scope": {"variable": "entity", "occurrence": -1}})],
        [
            ("interventions.swap.reads.v_cf.pos", {"span": [2, -1]}),
            ("interventions.swap.writes.patch.pos", {"last": 3}),
        ],
        [("interventions.swap.reads.v_cf.model", "original"), ("interventions.swap.reads.v_cf.input", "base")],
        [("interventions.swap.reads.logits.input", "counterfactual"), ("steps.score.saves[1]", GONE)],
        [("interventions.swap.reads.logits.pos.index", -3)],
        [("interventions.swap.reads.logits.pos", {"frame": "generated", "index": -1, "scope": {"segment": "eos"}})],
        [("featurizers.plain.kind", "identity"), ("interventions.swap.writes.patch.featurizer", "plain")],
        [("sites.sweep", {"component": "lm_head"}), ("interventions.swap.reads.logits.site", "sweep")],
        [("steps.score.outputs", {"m": "v_cf", "n": {"read": "v_cf", "reduce": "mean"}})],
        [("sites.early.layers", [0])],
        [
            (
                "interventions.swap.reads.w",
                {"site": "late", "input": "base", "pos": {"frame": "generated", "span": [1, -1]}},
            )
        ],
        [
            (
                "interventions.swap.reads.w",
                {"site": "late", "input": "base", "pos": {"frame": "generated", "span": [-1, 3]}},
            )
        ],
        [("interventions.swap.models.idle", {"input": "counterfactual", "writes": []})],
    ],
    ids=range(26),
)
def test_what_the_language_allows(edits: list[tuple[str, object]]):
    assert problems(changed(*edits)) == []


def test_an_output_of_an_earlier_step_is_an_operand():
    means = {"reads": {"r": {"site": "early", "pos": {"all": True}, "input": "base"}}}
    first = {
        "kind": "observe",
        "rows": {"base": "a/b"},
        "interventions": "means",
        "outputs": {"m": {"read": "r", "reduce": "mean"}},
    }
    steps = {"first": first, "score": document()["steps"]["score"]}
    edits = [
        ("interventions.means", means),
        ("steps", steps),
        ("interventions.swap.writes.patch.operand", {"ref": "m"}),
    ]
    point = loaded(changed(*edits)).points[0]
    assert point.document.interventions["swap"].writes["patch"].operand == Ref(ref="m")


def test_an_inline_intervention_is_a_node():
    inline = document()["interventions"]["swap"]
    point = loaded(changed(("steps.score.interventions", [inline, "swap"]))).points[0]
    used = point.document.steps["score"].interventions
    assert isinstance(used, tuple)
    assert isinstance(used[0], Intervention)
    assert used[1] == "swap"
    assert point.document.steps["score"].nested


def test_all_problems_of_all_kinds_come_in_one_pass():
    """A misspelt key, mechanism, site name and a metric's kind: none hides another."""
    bad = changed(
        ("interventions.swap.decode", GONE),
        ("interventions.swap.decoed", 3),
        ("interventions.swap.writes.patch.mechanism", "swapp"),
        ("interventions.swap.reads.v_cf.site", "erly"),
        ("interventions.swap.metrics.q", {"kind": "matc"}),
        ("model.dtype", "fp23"),
        ("steps.score.saves[0].file_path", "../p.json"),
    )
    assert paths(bad) == [
        "interventions.swap.decoed",
        "interventions.swap.metrics.q.kind",
        "interventions.swap.reads.v_cf.site",
        "interventions.swap.writes.patch.mechanism",
        "model.dtype",
        "steps.score.saves[0].file_path",
    ]


def test_a_misspelt_required_key_is_one_problem():
    bad = changed(
        ("interventions.swap.writes.patch.mechanism", GONE), ("interventions.swap.writes.patch.mechansim", "swap")
    )
    assert paths(bad) == ["interventions.swap.writes.patch.mechansim"]


def test_what_a_broken_part_declares_counts_as_declared():
    assert paths(changed(("interventions.swap.reads.v_cf.pos", "last"))) == ["interventions.swap.reads.v_cf.pos"]
    assert paths(changed(("sites.early.layers", "0"))) == ["sites.early.layers"]
    assert paths(changed(("sites", []))) == ["sites"]
    assert paths(changed(("interventions.swap", 3))) == ["interventions.swap"]
    assert paths(changed(("interventions.swap.decode", "3"))) == ["interventions.swap.decode"]
    assert paths(changed(("interventions.swap.metrics.p.kind", "x"))) == ["interventions.swap.metrics.p.kind"]


def test_problems_stand_in_the_order_of_the_text_with_their_lines():
    text = json.dumps(changed(("model.dtype", 3), ("steps.score.rows", 3), ("sites.early.layers", -1)), indent=1)
    found = problems(text.encode())
    lines = text.split("\n")
    assert [problem.path for problem in found] == ["model.dtype", "sites.early.layers", "steps.score.rows"]
    assert ['"dtype"' in lines[found[0].line - 1], '"layers"' in lines[found[1].line - 1]] == [True, True]
    assert '"rows"' in lines[found[2].line - 1]


def test_a_problem_of_every_point_is_told_once_and_one_of_some_says_where():
    swept = changed(("interventions.swap.reads.logits.pos.index", {"sweep": [0, 3]}), ("roles.base.field", 3))
    found = problems(swept)
    assert [problem.path for problem in found] == ["roles.base.field", "interventions.swap.reads.logits.pos"]
    assert "at the point" not in found[0].message
    assert found[1].message == "{generated index:3} is step 3 of a 3-token decode (at the point index=3)"


def test_many_problems_of_one_place_are_counted():
    found = problems(changed(("interventions.swap.reads.logits.pos.index", {"sweep": {"range": [0, 100]}})))
    assert len(found) == 4
    assert sum("and 94 more like these" in problem.message for problem in found) == 1


def test_a_broken_sweep_does_not_hide_other_problems_nor_make_any():
    found = problems(changed(("interventions.swap.reads.logits.pos.index", {"sweep": 3}), ("model.dtype", "x")))
    assert [problem.path for problem in found] == ["model.dtype", "interventions.swap.reads.logits.pos.index.sweep"]


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (b"{", SyntaxRefusal),
        (changed(("interventions.swap.decode", {"sweep": []})), SweepRefusal),
        (changed(("model.dtype", 3)), SchemaRefusal),
        (changed(("interventions.swap.metrics.p.of", "x")), ReferenceRefusal),
    ],
)
def test_the_kind_of_refusal(bad: object, kind: type[Exception]):
    with pytest.raises(kind):
        loaded(bad)


def test_later_refusals_get_their_lines():
    good = loaded(document())
    placed = good.placed(PlanRefusal([Problem("steps.score.rows.base", "no such table"), Problem("", "nowhere")]))
    assert isinstance(placed, PlanRefusal)
    assert [problem.line is None for problem in placed.problems] == [True, False]


def test_ten_thousand_points_share_what_does_not_differ():
    swept = changed(
        ("interventions.swap.writes.patch.params", {"scale": {"sweep": {"range": [0, 10_000]}}}),
        ("interventions.swap.writes.patch.mechanism", "add_scaled"),
    )
    points = loaded(swept).points
    assert len(points) == 10_000
    first, last = points[0].document, points[-1].document
    assert first.sites is last.sites
    assert first.interventions["swap"].reads["v_cf"] is last.interventions["swap"].reads["v_cf"]
    assert last.interventions["swap"].writes["patch"].params == {"scale": 9999}
