"""Where a chat's contents stand in the text a template makes of it.

Each message's content is replaced in turn by one character that stands nowhere else, and the chat rendered again. What
stands before and after that character stands before and after the content too, or the content is not located.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from causalab_mini.checkpoint.text import Segment
from causalab_mini.errors import PlanRefusal, Problem
from causalab_mini.vocabulary.message import Chat, Message

_PRIVATE = range(0xE000, 0xF8FF)


def turns(chat: Chat, text: str, render: Callable[[Chat], str]) -> tuple[Segment, ...]:
    """The content of every message in `text`, which is `render(chat)`, in order, without the template's markers.

    Where a template trims a content, or keeps one part of it, the segment is what is kept. Where it leaves one out, the
    segment is empty. Refused where it writes a content twice or rewrites it.
    """
    return tuple(_turns(chat, text, render))


def _turns(chat: Chat, text: str, render: Callable[[Chat], str]) -> Iterator[Segment]:
    used = {*text, *(char for message in chat for char in message.content)}
    mark = next(chr(code) for code in _PRIVATE if chr(code) not in used)
    for number, message in enumerate(chat):
        marked = render((*chat[:number], replace(message, content=mark), *chat[number + 1 :]))
        start, end = _between(text, marked, mark, number, message)
        yield Segment(message.role, start, end)


def _between(text: str, marked: str, mark: str, number: int, message: Message) -> tuple[int, int]:
    if mark not in marked:
        return 0, 0
    if marked.count(mark) > 1:
        raise _lost(number, message, f"stands {marked.count(mark)} times in it")
    before, after = marked.split(mark)
    start, end = len(before), len(text) - len(after)
    fits = start <= end and text.startswith(before) and text.endswith(after)
    if fits and text[start:end] in message.content:
        return start, end
    if not message.content.strip():
        return 0, 0
    raise _lost(number, message, f"becomes {text[start:end]!r}" if fits else "changes what stands around it")


def _lost(number: int, message: Message, found: str) -> PlanRefusal:
    said = f"the checkpoint's chat template rewrites message {number} ('{message.role}'): its content {found}"
    return PlanRefusal(Problem("", f"{said}, so the turn cannot be located", "write that turn in another way"))
