"""Ten thousand points: what they share is checked once, what differs is checked, and wrong points are told."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worlds import document

from causalab_mini.errors import Refusal
from causalab_mini.spec import load as loading
from causalab_mini.spec.check import Checker, check
from causalab_mini.spec.check.watched import PATIENCE, Asked, Differences
from causalab_mini.spec.parse import Parser
from causalab_mini.spec.sweep import expand
from causalab_mini.vocabulary.node import Node

MANY = 10_000
ONE = "interventions.interchange"


def asked(document: dict, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often each question was asked while the document was loaded."""
    made: list[Checker] = []

    def one() -> Checker:
        made.append(Checker())
        return made[-1]

    monkeypatch.setattr(loading, "Checker", one)
    loaded = loading.load(json.dumps(document).encode(), "document.json")
    assert len(loaded.points) == MANY
    (checker,) = made
    return {str(name): count for (name, _), count in checker.asked.times.items()}


def test_a_parameter_is_only_the_writes_business(monkeypatch: pytest.MonkeyPatch) -> None:
    swept = document("v2/patching")
    write = swept["interventions"]["interchange"]["writes"]["patch"]
    write |= {"mechanism": "lerp", "params": {"t": {"sweep": [i / MANY for i in range(MANY)], "as": "t"}}}
    times = asked(swept, monkeypatch)
    again = {name for name, count in times.items() if count > 1}
    assert again == {f"{ONE} causalab_mini.spec.check.writes check"}
    assert max(times.values()) == MANY


def test_a_layer_is_the_business_of_sites_and_of_writes_that_may_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    swept = document("v2/patching")
    swept["sites"]["late"]["layers"] = {"sweep": {"range": [0, MANY]}}
    times = asked(swept, monkeypatch)
    again = {name for name, count in times.items() if count > PATIENCE + 1}
    assert again <= {"sites", f"{ONE} causalab_mini.spec.check.models check"}


def test_wrong_points_among_many_are_told() -> None:
    swept = document("v2/patching")
    values = [i / 100 for i in range(100)]
    values[40] = "half"  # type: ignore[call-overload]
    write = swept["interventions"]["interchange"]["writes"]["patch"]
    write |= {"mechanism": "lerp", "params": {"t": {"sweep": values, "as": "t"}}}
    with pytest.raises(Refusal) as caught:
        loading.load(json.dumps(swept).encode(), "document.json")
    (problem,) = caught.value.problems
    assert problem.path == f"{ONE}.writes.patch.params.t"
    assert "(at the point t=half)" in problem.message


PLACES = [
    (("interventions", "interchange", "reads", "v_cf", "pos"), [-1, {"last": 2}, {"all": True}, {"index": 0}]),
    (("interventions", "interchange", "writes", "patch", "pos"), [-1, {"last": 2}, {"last": 3}]),
    (("interventions", "interchange", "writes", "patch", "operand"), ["v_cf", "logits", 3, "nobody"]),
    (("interventions", "interchange", "writes", "patch", "site"), ["late", "head", "nowhere"]),
    (("interventions", "interchange", "writes", "patch", "mechanism"), ["swap", "lerp", "swop"]),
    (("interventions", "interchange", "metrics", "flipped", "of"), ["logits", "v_cf", "none"]),
    (("sites", "late", "layers"), [4, None, [1, 2], "all"]),
    (("sites", "late", "component"), ["block_output", "lm_head", "attention_value"]),
    (("steps", "score", "rows", "base"), ["weekdays/train", "../x", "x"]),
    (("interventions", "interchange", "decode"), [0, 3]),
]


@given(st.lists(st.sampled_from(PLACES), min_size=1, max_size=3, unique_by=lambda place: place[0]))
@settings(max_examples=60, deadline=None)
def test_what_is_remembered_is_what_each_point_is_told_alone(places: list) -> None:
    swept = document("v2/patching")
    for number, (path, values) in enumerate(places):
        *above, last = path
        here = swept
        for part in above:
            here = here[part]
        here[last] = {"sweep": copy.deepcopy(values), "as": f"axis{number}"}
    together, parser = Checker(), Parser()
    for point in expand(swept).points():
        parsed, alone = parser.document(point.value), Parser().document(copy.deepcopy(point.value))
        assert parsed.node is not None
        assert alone.node is not None
        assert list(together.check(parsed.node, parsed.broken)) == list(check(alone.node, alone.broken)), point.label


class Leaf(Node):
    """Says whether its number is large, and whether that is so although it is named small."""

    number: float
    name: str = "small"

    @property
    def large(self) -> bool:
        return self.number > 10

    @property
    def odd(self) -> bool:
        return self.large and self.name == "small"

    @property
    def both(self) -> tuple[float, str]:
        return (self.number, self.name)

    def method(self) -> float:
        return self.number


class Tree(Node):
    leaves: dict[str, Leaf]
    pair: tuple[Leaf, ...] = ()
    other: int = 0


def asks(question, *trees: Tree) -> tuple[list[object], int]:
    """The answers about each tree, and how often the question was asked."""
    watch = Asked[Tree, object](Differences())
    answers = [watch.ask("q", tree, lambda tree: [question(tree)])[0] for tree in trees]
    assert answers == [question(tree) for tree in trees]
    return answers, watch.times["q"]


def one(number: float = 1.0, name: str = "small", other: int = 0) -> Tree:
    return Tree(leaves={"a": Leaf(number=number, name=name)}, other=other)


@pytest.mark.parametrize(
    ("question", "trees", "times"),
    [
        (lambda tree: tree.other, (one(), one(2.0), one(3.0, "big")), 1),
        (lambda tree: tree.leaves["a"].number, (one(), one(name="big"), one(2.0)), 2),
        (lambda tree: tree.leaves["a"].large, (one(1.0), one(2.0), one(11.0), one(12.0), one(3.0)), 2),
        (lambda tree: tree.leaves["a"].odd, (one(1.0), one(2.0), one(11.0), one(11.0, "big"), one(12.0)), 2),
        (lambda tree: tree.leaves["a"].both, (one(1.0), one(2.0), one(1.0, other=1)), 2),
        (lambda tree: tree.leaves["a"].method(), (one(1.0), one(1.0, "big"), one(1.0, other=3)), 2),
        (lambda tree: "b" in tree.leaves, (one(), Tree(leaves={"a": Leaf(number=1.0), "b": Leaf(number=2.0)})), 2),
        (
            lambda tree: [leaf.number for leaf in tree.pair],
            (one(), Tree(leaves={}, pair=(Leaf(number=1.0),)), Tree(leaves={}, pair=(Leaf(number=1.0, name="big"),))),
            2,
        ),
        (
            lambda tree: list(tree.leaves),
            (
                Tree(leaves={"a": Leaf(number=1.0), "b": Leaf(number=2.0)}),
                Tree(leaves={"b": Leaf(number=2.0), "a": Leaf(number=1.0)}),
                Tree(leaves={"a": Leaf(number=3.0), "b": Leaf(number=2.0)}),
            ),
            2,
        ),
    ],
)
def test_a_question_is_asked_again_only_where_it_looked(question, trees: tuple[Tree, ...], times: int) -> None:
    assert asks(question, *trees)[1] == times


def test_what_a_property_of_a_property_says_is_not_taken_for_granted() -> None:
    answers, _ = asks(lambda tree: tree.leaves["a"].odd, one(1.0), one(2.0), one(11.0), one(1.0), one(12.0))
    assert answers == [False, False, True, False, True]
