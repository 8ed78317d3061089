"""KEY=VALUE options: values are JSON, and a word that is none stands for itself.

Knows how they are spelled; what a key means is for whoever asks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from causalab_mini.errors import Problem, Refusal, suggest
from causalab_mini.vocabulary.generation import Json


def settings(option: str, pairs: Sequence[str] | None, known: Sequence[str] | None = None) -> dict[str, Json]:
    """What `pairs` state, in order. Refused: one that is no KEY=VALUE, that is there twice or that is not `known`."""
    found: dict[str, Json] = {}
    problems: list[Problem] = []
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        if not equals or not key:
            problems.append(Problem("", f"{option} takes KEY=VALUE, and '{pair}' was found", f"say {option} key=1.5"))
        elif key in found:
            problems.append(Problem("", f"{option} says '{key}' twice", "keep one"))
        elif known is not None and key not in known:
            problems.append(Problem("", f"{option}: there is no '{key}'", suggest(key, known, "keys")))
        else:
            found[key] = _value(text)
    if problems:
        raise Refusal(problems)
    return found


def _value(text: str) -> Json:
    def strange(word: str) -> Json:
        return word

    try:
        return cast(Json, json.loads(text, parse_constant=strange))
    except ValueError:
        return text
