import pytest

from causalab_mini.spec.check.positions import overlap, width
from causalab_mini.spec.positions import Position


def pos(**fields: object) -> Position:
    return Position.model_validate(fields)


def gen(**fields: object) -> Position:
    return pos(frame="generated", **fields)


def spelled(position: Position) -> str:
    return position.compact()


@pytest.mark.parametrize(
    ("position", "spelling"),
    [
        (pos(index=-1), "{index:-1}"),
        (pos(last=3), "{last:3}"),
        (pos(span=[-4, -1]), "{span:[-4, -1]}"),
        (pos(all=True), "{all}"),
        (pos(all=True, scope={"variable": "entity"}), "{all scope:{variable:entity}}"),
        (gen(index=0), "{generated index:0}"),
        (gen(all=True), "{generated all}"),
        (gen(index=-1, scope={"segment": "eos"}), "{generated index:-1 scope:{segment:eos}}"),
        (gen(index=2, token="input"), "{generated index:2 token:input}"),
        (
            pos(index=0, scope={"variable": "x", "segment": "user[1]", "occurrence": -1}),
            "{index:0 scope:{segment:user[1] variable:x occurrence:-1}}",
        ),
    ],
)
def test_compact_spelling(position: Position, spelling: str):
    assert position.compact() == spelling


@pytest.mark.parametrize(
    ("position", "tokens"),
    [
        (pos(index=5), 1),
        (pos(last=3), 3),
        (pos(span=[1, 4]), 3),
        (pos(span=[-4, -1]), 3),
        (pos(span=[1, -1]), None),
        (pos(all=True), None),
        (pos(index=0, scope={"variable": "x"}), 1),
        (gen(all=True), 6),
        (gen(all=True, scope={"segment": "eos"}), None),
    ],
)
def test_width(position: Position, tokens: int | None):
    assert width(position, 6) == tokens


SURE = [
    (pos(index=-1), pos(index=-1)),
    (pos(index=-1), pos(last=2)),
    (pos(index=1), pos(span=[0, 2])),
    (pos(span=[-4, -1]), pos(span=[-2, -1])),
    (pos(all=True), pos(index=7)),
    (pos(all=True), pos(index=0, scope={"variable": "x"})),
    (pos(span=[1, -1]), pos(span=[1, -1])),
    (pos(all=True, scope={"variable": "x"}), pos(all=True, scope={"variable": "x"})),
    (gen(index=1), gen(all=True)),
    (gen(index=1), gen(span=[0, 2])),
    (gen(index=0), pos(index=-1)),
    (gen(all=True), pos(last=4)),
    (gen(span=[0, 2]), pos(all=True)),
]
OPEN = [
    (pos(index=-1), pos(index=-2)),
    (pos(index=0), pos(index=-1)),
    (pos(index=2), pos(span=[0, 2])),
    (pos(span=[-4, -1]), pos(index=-1)),
    (pos(span=[1, -1]), pos(index=2)),
    (pos(index=0, scope={"variable": "x"}), pos(index=0, scope={"variable": "y"})),
    (pos(index=0, scope={"variable": "x"}), pos(index=0)),
    (gen(index=1), gen(index=2)),
    (gen(index=1), pos(index=-1)),
    (gen(span=[1, 3]), pos(all=True)),
    (gen(index=0), pos(span=[-3, -1])),
    (gen(index=0), pos(index=-1, scope={"variable": "x"})),
]


@pytest.mark.parametrize(("one", "other"), SURE, ids=spelled)
def test_positions_that_share_a_token(one: Position, other: Position):
    assert overlap(one, other)
    assert overlap(other, one)


@pytest.mark.parametrize(("one", "other"), OPEN, ids=spelled)
def test_positions_that_need_not(one: Position, other: Position):
    assert not overlap(one, other)
    assert not overlap(other, one)
