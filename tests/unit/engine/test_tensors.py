"""gather and scatter, by hand and as inverse of each other."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from causalab_mini.engine.tensors import gather, scatter


def index(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)


def test_gather_takes_cells_in_the_order_asked() -> None:
    t = torch.arange(12).reshape(2, 3, 2)
    assert gather(t, index(1, 0), index(0, 2)).tolist() == [[6, 7], [4, 5]]
    assert gather(t, index(1, 0), index(0, 2), index(1)).tolist() == [[7], [5]]


def test_scatter_replaces_cells_of_a_copy() -> None:
    t = torch.zeros(2, 2, 2)
    new = scatter(t, index(1), index(0), torch.tensor([[3.0, 4.0]]))
    assert new.tolist() == [[[0, 0], [0, 0]], [[3, 4], [0, 0]]]
    assert t.abs().sum() == 0
    assert scatter(t, index(0), index(1), torch.tensor([[5.0]]), index(1))[0, 1].tolist() == [0, 5]


def test_gather_of_everything_is_not_a_view() -> None:
    t = torch.zeros(1, 1, 2)
    assert gather(t, index(0), index(0)).untyped_storage().data_ptr() != t.untyped_storage().data_ptr()


@pytest.mark.parametrize(
    ("t", "lanes", "columns", "values", "features", "found"),
    [
        (torch.zeros(2, 2), index(0), index(0), torch.zeros(1, 2), None, r"\[L, T, w\]"),
        (torch.zeros(1, 2, 2), index(0), index(0, 1), torch.zeros(1, 2), None, r"\[n\] both"),
        (torch.zeros(1, 2, 2), index(0).int(), index(0), torch.zeros(1, 2), None, "int64"),
        (torch.zeros(1, 2, 2), index(0, 0), index(0, 1), torch.zeros(1, 2), None, "2 cells of width 2"),
        (torch.zeros(1, 2, 2), index(0), index(0), torch.zeros(1, 2), index(0), "1 cells of width 1"),
        (torch.zeros(1, 2, 2), index(0), index(0), torch.zeros(1, 2).double(), None, "float64"),
    ],
)
def test_shapes_are_checked_and_nothing_is_broadcast(
    t: Tensor, lanes: Tensor, columns: Tensor, values: Tensor, features: Tensor | None, found: str
) -> None:
    with pytest.raises(ValueError, match=found):
        scatter(t, lanes, columns, values, features)


@st.composite
def cells(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    size = draw(st.tuples(*[st.integers(1, 4)] * 3))
    places = draw(st.lists(st.tuples(st.integers(0, size[0] - 1), st.integers(0, size[1] - 1)), unique=True))
    features = draw(st.none() | st.lists(st.integers(0, size[2] - 1), unique=True))
    return (
        torch.arange(size[0] * size[1] * size[2], dtype=torch.float32).reshape(size),
        index(*[lane for lane, _ in places]),
        index(*[column for _, column in places]),
        None if features is None else index(*features),
    )


@settings(deadline=None)
@given(cells())
def test_gather_after_scatter_gives_the_values_and_leaves_the_rest(
    drawn: tuple[Tensor, Tensor, Tensor, Tensor | None],
) -> None:
    t, lanes, columns, features = drawn
    values = -1 - torch.rand(len(lanes), t.shape[2] if features is None else len(features))
    written = scatter(t, lanes, columns, values, features)
    assert torch.equal(gather(written, lanes, columns, features), values)
    assert (written != t).sum() == values.numel()
    assert torch.equal(scatter(written, lanes, columns, gather(t, lanes, columns, features), features), t)
