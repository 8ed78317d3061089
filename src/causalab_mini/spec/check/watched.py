"""Answers that are given again as long as everything they were made from is the same.

Points of a sweep share all parts but the swept ones. A question is asked of a document through stand-ins that note
what is looked at; for another point it is asked again only if the two documents differ in one of those places.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel

Answer = TypeVar("Answer")
Root = TypeVar("Root", bound=BaseModel)
Place = tuple[str | int, ...]
"""The way to a part of a document: fields, names and numbers in lists."""
Places = frozenset[Place]

PATIENCE = 4
"""How many answers to a question may turn out not to hold for another point before it is simply asked each time."""


@dataclass
class Looks:
    """Where a question looked.

    `passed`: every part that was met; `whole`: those that may have been looked at in all they hold; `told`: what
    properties of nodes said.
    """

    passed: set[Place] = field(default_factory=set[Place])
    whole: set[Place] = field(default_factory=set[Place])
    told: list[Told] = field(default_factory=list["Told"])
    _doubtful: dict[Places, tuple[Told, ...] | None] = field(default_factory=dict["Places", "tuple[Told, ...] | None"])

    def same(self, places: Places, now: BaseModel) -> bool:
        """Whether a document that is another one in these places, `now`, looks the same."""
        if places not in self._doubtful:
            doubtful = tuple(told for told in self.told if not told.looks.elsewhere(places))
            self._doubtful[places] = doubtful if self._untouched(places) else None
        doubtful = self._doubtful[places]
        return doubtful is not None and all(told.again(now) for told in doubtful)

    def elsewhere(self, places: Places) -> bool:
        """Whether none of these places was looked at in any way."""
        return self._untouched(places) and all(told.looks.elsewhere(places) for told in self.told)

    def _untouched(self, places: Places) -> bool:
        return places.isdisjoint(self.passed) and _above(places).isdisjoint(self.whole)


@dataclass(frozen=True)
class Told:
    """What a property of the node at `place` said, and where it looked for it."""

    place: Place
    name: str
    value: object
    looks: Looks

    def again(self, now: BaseModel) -> bool:
        """Whether it says the same in `now`."""
        return getattr(_at(now, self.place), self.name) == self.value


@lru_cache
def _above(places: Places) -> Places:
    """What these places lie in, and they."""
    return frozenset(place[:end] for place in places for end in range(len(place) + 1))


class Differences:
    """Where documents differ from the one at hand; found once for all who ask."""

    def __init__(self) -> None:
        self._now: object = None
        self._found: dict[int, Places] = {}

    def between(self, one: BaseModel, now: BaseModel) -> Places:
        """The innermost parts that stand in both `one` and `now` and are not the same."""
        if self._now is not now:
            self._now, self._found = now, {}
        if id(one) not in self._found:
            found: list[Place] = []
            if one is not now:
                _compare(one, now, (), found)
            self._found[id(one)] = frozenset(found)
        return self._found[id(one)]


def _compare(one: Any, other: Any, at: Place, found: list[Place]) -> None:
    """Add to `found` where two parts that are not one object differ."""
    if type(one) is not type(other):
        found.append(at)
    elif isinstance(one, BaseModel):
        _compare_parts(one.__dict__, other.__dict__, at, found)
    elif not _opened(one):
        # A list of numbers is not compared by its value, which would take 1 for 1.0.
        if not (one == other if isinstance(one, str | int | float) else not one and not other):
            found.append(at)
    elif isinstance(one, dict):
        _compare_parts(cast("dict[str, object]", one), other, at, found)
    else:
        _compare_parts(dict(enumerate(one)), dict(enumerate(other)), at, found)


def _compare_parts(one: Mapping[Any, object], other: Mapping[Any, object], at: Place, found: list[Place]) -> None:
    if [*one] != [*other]:
        found.append(at)
        return
    for key, part in one.items():
        if part is not (now := other[key]):
            _compare(part, now, (*at, key), found)


def _opened(value: object) -> bool:
    """Whether a part is looked into: a node, or a section or list of nodes. Everything else is looked at whole."""
    if isinstance(value, dict):
        return isinstance(next(iter(cast("dict[str, object]", value).values()), None), BaseModel)
    if isinstance(value, tuple):
        return any(isinstance(part, BaseModel) for part in cast("tuple[object, ...]", value))
    return isinstance(value, BaseModel)


def _at(root: object, place: Place) -> object:
    for key in place:
        root = getattr(root, cast(str, key)) if isinstance(root, BaseModel) else cast(Any, root)[key]
    return root


def _stand_in(value: object, at: Place, looks: Looks) -> object:
    looks.passed.add(at)
    if not _opened(value):
        return value
    if isinstance(value, dict):
        return _Section(cast("dict[str, object]", value), at, looks)
    if isinstance(value, tuple):
        parts = cast("tuple[object, ...]", value)
        return tuple(_stand_in(part, (*at, number), looks) for number, part in enumerate(parts))
    return _Node(cast(BaseModel, value), at, looks)


class _Node:
    """Stands in for a node: what a property says is kept, a method is a look at the whole."""

    __slots__ = ("_looks", "_place", "_value")

    def __init__(self, value: BaseModel, place: Place, looks: Looks) -> None:
        self._value = value
        self._place = place
        self._looks = looks

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        return type(self._value)

    def __getattr__(self, name: str) -> object:
        node = type(self._value)
        if name in node.model_fields:
            return _stand_in(getattr(self._value, name), (*self._place, name), self._looks)
        known = getattr(node, name, None)
        if isinstance(known, property) and known.fget is not None:
            looks = Looks()
            value = known.fget(_Node(self._value, self._place, looks))
            if isinstance(value, str | bool | int | float | None):
                self._looks.told.append(Told(self._place, name, value, looks))
                return value
        self._looks.whole.add(self._place)
        return getattr(self._value, name)

    def __eq__(self, other: object) -> bool:
        self._looks.whole.add(self._place)
        if type(other) is _Node:
            other._looks.whole.add(other._place)
            other = other._value
        return self._value == other

    def __hash__(self) -> int:
        self._looks.whole.add(self._place)
        return hash(self._value)


class _Section(Mapping[str, object]):
    """Stands in for nodes by name; which names there are, is as good as looked at."""

    __slots__ = ("_looks", "_place", "_value")

    def __init__(self, value: Mapping[str, object], place: Place, looks: Looks) -> None:
        self._value = value
        self._place = place
        self._looks = looks

    def __getitem__(self, name: str) -> object:
        return _stand_in(self._value[name], (*self._place, name), self._looks)

    def __contains__(self, name: object) -> bool:
        return name in self._value

    def __iter__(self) -> Iterator[str]:
        return iter(self._value)

    def __len__(self) -> int:
        return len(self._value)


@dataclass(frozen=True)
class _Known(Generic[Root, Answer]):
    """The answers to a question about a document."""

    root: Root
    looks: Looks
    answers: tuple[Answer, ...]


@dataclass
class Asked(Generic[Root, Answer]):
    """Questions of documents, by name; `times` counts how often each was really asked."""

    differences: Differences
    times: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    _known: dict[Hashable, list[_Known[Root, Answer]]] = field(
        default_factory=dict[Hashable, "list[_Known[Root, Answer]]"]
    )

    def ask(self, name: Hashable, root: Root, question: Callable[[Root], Iterable[Answer]]) -> tuple[Answer, ...]:
        """The answers to a question of this name about `root`."""
        known = self._known.setdefault(name, [])
        if len(known) <= PATIENCE:
            for one in known:
                if one.looks.same(self.differences.between(one.root, root), root):
                    return one.answers
        self.times[name] = self.times.get(name, 0) + 1
        if len(known) > PATIENCE:
            return tuple(question(root))
        looks = Looks()
        answers = tuple(question(cast(Root, _stand_in(root, (), looks))))
        known.append(_Known(root, looks, answers))
        return answers
