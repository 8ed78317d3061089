from tests.unit.spec.build import changed, loaded, paths

from causalab_mini.spec.children import Child, children

INLINE = {
    "reads": {"r": {"site": "head", "pos": -1, "input": "base"}},
    "metrics": {"e": {"kind": "entropy", "of": "r"}},
}
LIST = ["swap", INLINE]


def found(*edits: tuple[str, object]) -> list[Child]:
    return list(children(loaded(changed(*edits)).points[0].document, "score"))


def test_one_declared_intervention():
    (child,) = found()
    assert (child.name, child.path) == ("swap", "interventions.swap")
    assert child.produced == ("p", "original.generated", "patched.generated")
    assert [save.value for save in child.saves] == ["p", "patched.generated"]


def test_an_inline_intervention_is_named_after_its_step():
    saves = [{"value": "e", "file_path": "e.json"}]
    (child,) = found(("steps.score.interventions", INLINE), ("steps.score.saves", saves))
    assert (child.name, child.path) == ("score", "steps.score.interventions")


def test_a_list_has_a_child_for_each():
    first, second = found(("steps.score.interventions", LIST))
    assert (first.name, second.name) == ("swap", "score[1]")
    assert second.path == "steps.score.interventions[1]"
    assert [save.value for save in first.saves] == ["p", "patched.generated"]
    assert second.saves == ()


def test_a_bare_name_means_every_child_and_a_qualified_one_means_one():
    other = {**INLINE, "metrics": {"p": {"kind": "entropy", "of": "r"}}}
    saves = [{"value": "p", "file_path": "p.json"}, {"value": "score[1].p", "file_path": "again.json"}]
    edits = [("steps.score.interventions", ["swap", other]), ("steps.score.saves", saves)]
    first, second = found(*edits)
    assert [(save.value, save.file_path) for save in first.saves] == [("p", "p.json")]
    assert [(save.value, save.file_path) for save in second.saves] == [("p", "p.json"), ("p", "again.json")]


def test_a_save_that_no_child_makes_is_refused():
    edits = [("steps.score.interventions", LIST), ("steps.score.saves[0].value", "score[1].p")]
    assert paths(changed(*edits)) == ["steps.score.saves[0].value"]


def test_an_output_belongs_to_the_children_that_have_its_read():
    first, second = found(("steps.score.interventions", LIST), ("steps.score.outputs", {"o": "r", "v": "v_cf"}))
    assert (list(first.outputs), list(second.outputs)) == (["v"], ["o"])
    assert second.produced == ("e", "o")


def test_two_children_write_to_directories_of_their_own():
    other = {**INLINE, "metrics": {"p": {"kind": "entropy", "of": "r"}}}
    saves = [{"value": "p", "file_path": "p.json"}, {"value": "swap.p", "file_path": "q.json"}]
    assert paths(changed(("steps.score.interventions", ["swap", other]), ("steps.score.saves", saves))) == []
    saves[1] = {"value": "swap.p", "file_path": "p.json"}
    edits = [("steps.score.interventions", ["swap", other]), ("steps.score.saves", saves)]
    assert paths(changed(*edits)) == ["steps.score.saves[1].file_path"]
