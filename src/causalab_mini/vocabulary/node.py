"""The base of every object a document may hold, and the registry type.

Knows pydantic and nothing else. A node is strict (`true` is not a number, `2.0` is not an integer), closed
(an unknown key is an error) and frozen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Generic, Protocol, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints
from pydantic_core import PydanticCustomError

from causalab_mini.errors import suggest

NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_-]*$"
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


FromList = BeforeValidator(_listed)
"""Lets a strict tuple field take a JSON list."""


def mismatch(expected: str) -> PydanticCustomError:
    """What a validator raises where the value has a wrong type; `expected` reads on with "is needed"."""
    return PydanticCustomError("mismatch", "{expected} is needed", {"expected": expected})


def whole(value: object) -> bool:
    """Whether a JSON value is an integer; `true` is not."""
    return isinstance(value, int) and not isinstance(value, bool)


class Node(BaseModel):
    """An object of a document: strict, closed, frozen."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    if TYPE_CHECKING:
        # pydantic gives frozen nodes a hash of their fields, which type checkers cannot see.
        def __hash__(self) -> int: ...


class Named(Protocol):
    """Anything a registry can hold."""

    @property
    def name(self) -> str:
        """The word a document uses for it."""
        ...


Shape = TypeVar("Shape", bound=Node, covariant=True)


@dataclass(frozen=True)
class Kind(Generic[Shape]):
    """A node class under the word a document uses for it."""

    name: str
    node: type[Shape]


Item = TypeVar("Item", bound=Named)


@dataclass(frozen=True)
class Registry(Generic[Item]):
    """An explicit, ordered, frozen set of kinds."""

    noun: str
    items: tuple[Item, ...]

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @cached_property
    def _by_name(self) -> dict[object, Item]:
        return {item.name: item for item in self.items}

    def names(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(item.name for item in self.items)

    def get(self, name: str) -> Item:
        """The item called `name`; `KeyError` with the nearest name and the list when there is none."""
        if name not in self._by_name:
            raise KeyError(f"no {self.noun} is called '{name}'; {suggest(name, self.names(), self.noun + 's')}")
        return self._by_name[name]
