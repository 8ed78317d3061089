"""Answers that are given again as long as everything they were made from is the same.

Points of a sweep share all parts but the swept ones. A question is asked of a document through stand-ins that note what
is looked at; for the next point it is asked again only if one of those parts is another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel

Answer = TypeVar("Answer")
Root = TypeVar("Root", bound=BaseModel)

PATIENCE = 4
"""How many answers to a question may turn out not to hold for another point before it is simply asked each time."""


class Seen:
    """A part of a document that was looked at: all of it, or what was looked at in it, by attribute, key or place."""

    __slots__ = ("attributes", "items", "names", "opened", "there", "value", "whole")

    def __init__(self, value: object) -> None:
        self.value = value
        self.opened = _opened(value)
        self.whole = False
        self.names: tuple[str, ...] | None = None
        self.attributes: dict[str, Seen] = {}
        self.items: dict[str | int, Seen] = {}
        self.there: dict[str, bool] = {}

    def same(self, value: object) -> bool:
        """Whether everything that was looked at is the same in `value`."""
        mine = self.value
        if value is mine:
            return True
        if self.whole or type(value) is not type(mine):
            return False
        if not self.opened:
            return value == mine if isinstance(value, str | int | float) else not value and not mine
        for name, part in self.attributes.items():
            now = getattr(value, name)
            if now is not part.value and not part.same(now):
                return False
        return self._same_items(value)

    def _same_items(self, value: Any) -> bool:
        if self.names is not None and tuple(value) != self.names:
            return False
        if isinstance(self.value, tuple) and len(value) != len(self.items):
            return False
        for name, there in self.there.items():
            if (name in value) is not there:
                return False
        for key, part in self.items.items():
            now = value[key] if type(key) is int else value.get(key)
            if now is not part.value and not part.same(now):
                return False
        return True

    def attribute(self, name: str) -> Seen:
        """The attribute of a node, noted as looked at."""
        if name not in self.attributes:
            self.attributes[name] = Seen(getattr(self.value, name))
        return self.attributes[name]

    def item(self, key: str | int) -> Seen:
        """The part of a section or a list, noted as looked at."""
        if key not in self.items:
            self.items[key] = Seen(cast(Any, self.value)[key])
        return self.items[key]


def _opened(value: object) -> bool:
    """Whether a part is looked into: a node, or a section or list of nodes. Everything else is looked at whole."""
    if isinstance(value, dict):
        parts = cast("dict[str, object]", value)
        return bool(parts) and all(isinstance(part, BaseModel) for part in parts.values())
    if isinstance(value, tuple):
        return any(isinstance(part, BaseModel) for part in cast("tuple[object, ...]", value))
    return isinstance(value, BaseModel)


def _stand_in(seen: Seen) -> object:
    value = seen.value
    if not seen.opened:
        return value
    if isinstance(value, dict):
        return _Section(seen)
    if isinstance(value, tuple):
        return tuple(_stand_in(seen.item(place)) for place in range(len(cast("tuple[object, ...]", value))))
    return _Node(seen)


class _Node:
    """Stands in for a node: what a property gives is noted as an attribute, a method is a look at the whole."""

    __slots__ = ("_seen",)

    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        return type(self._seen.value)

    def __getattr__(self, name: str) -> object:
        value = getattr(self._seen.value, name)
        if callable(value) or name.startswith(("model_", "__")):
            self._seen.whole = True
            return value
        return _stand_in(self._seen.attribute(name))

    def __eq__(self, other: object) -> bool:
        self._seen.whole = True
        if type(other) is _Node:
            other._seen.whole = True
            other = other._seen.value
        return self._seen.value == other

    def __hash__(self) -> int:
        self._seen.whole = True
        return hash(self._seen.value)


class _Section(Mapping[str, object]):
    """Stands in for nodes by name."""

    __slots__ = ("_seen", "_value")

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._value = cast("dict[str, object]", seen.value)

    def __getitem__(self, name: str) -> object:
        if name not in self._value:
            self._seen.there[name] = False
            raise KeyError(name)
        return _stand_in(self._seen.item(name))

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str):
            self._seen.there[name] = name in self._value
        return name in self._value

    def __iter__(self) -> Iterator[str]:
        self._seen.names = tuple(self._value)
        return iter(self._value)

    def __len__(self) -> int:
        self._seen.names = tuple(self._value)
        return len(self._value)


@dataclass
class Asked(Generic[Root, Answer]):
    """Questions of documents, by name; `times` counts how often each was really asked."""

    times: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    _known: dict[Hashable, list[tuple[Seen, tuple[Answer, ...]]]] = field(
        default_factory=dict[Hashable, "list[tuple[Seen, tuple[Answer, ...]]]"]
    )

    def ask(self, name: Hashable, root: Root, question: Callable[[Root], Iterable[Answer]]) -> tuple[Answer, ...]:
        """The answers to a question of this name about `root`."""
        known = self._known.setdefault(name, [])
        if len(known) <= PATIENCE:
            for seen, answers in known:
                if seen.same(root):
                    return answers
        self.times[name] = self.times.get(name, 0) + 1
        if len(known) > PATIENCE:
            return tuple(question(root))
        seen = Seen(root)
        answers = tuple(question(cast(Root, _Node(seen))))
        known.append((seen, answers))
        return answers
