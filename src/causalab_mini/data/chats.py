"""A cell that is a list of messages: what makes it a chat, and what is wrong where it is none.

Knows the shape of a message; refuses to know templates and tokens.
"""

from __future__ import annotations

import re

from causalab_mini.data.strict import Json
from causalab_mini.vocabulary.message import Chat, Message

SHAPE = 'a chat is a list of {"role": name, "content": text}'
_ROLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_KEYS = ("role", "content")
_TAKEN = ("prefix", "eos")


def chat(cell: list[Json]) -> Chat | str:
    """The messages of `cell`, or what is wrong with the first that is none.

    A key whose value is null counts as absent, since columnar files give every message every key.
    """
    if not cell:
        return "a chat without messages"
    messages: list[Message] = []
    for number, entry in enumerate(cell):
        found = _message(entry)
        if isinstance(found, str):
            return f"a chat whose message {number} {found}"
        messages.append(found)
    return tuple(messages)


def _message(entry: Json) -> Message | str:
    if not isinstance(entry, dict):
        return "is no object"
    given = {key: value for key, value in entry.items() if value is not None}
    missing = [key for key in _KEYS if key not in given]
    if missing:
        return f"has no '{missing[0]}'"
    unknown = [key for key in given if key not in _KEYS]
    if unknown:
        return f"has a key '{unknown[0]}', which is none of a message's"
    role, content = given["role"], given["content"]
    if not isinstance(role, str) or _ROLE.fullmatch(role) is None:
        return f"has the role {role!r}, which is no name"
    if role in _TAKEN:
        return f"has the role '{role}', which names another segment"
    if not isinstance(content, str):
        return "has a content that is no text"
    if any("\ud800" <= char <= "\udfff" for char in content):
        return "has half a surrogate pair in its content"
    return Message(role, content)
