"""A message of a chat: who speaks, and what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Message:
    """One turn. A role is a name, such as `system`, `user` or `assistant`; what it says may be empty."""

    role: str
    content: str


Chat = tuple[Message, ...]
"""A conversation, at least one message long."""
