"""How the text of an answer cell becomes one token.

Knows the four forms and the sentence each failure gets; refuses to know rows and metrics.
"""

from __future__ import annotations

from dataclasses import dataclass

from causalab_mini.checkpoint.tokenizer import Tokenizer
from causalab_mini.vocabulary.metric import TokenForm

SEVERAL = "use answers of one token, or another token_form; a longer one is forced, and scored by continuation_logprob"


@dataclass(frozen=True)
class AnswerProblem:
    """Why an answer is not one token. `tokens` are the ids found; `message` shows them."""

    message: str
    hint: str | None = None
    tokens: tuple[int, ...] = ()


def answer(tokenizer: Tokenizer, vocab: int, value: str | int, form: TokenForm, prompt: str) -> int | AnswerProblem:
    """The id of the answer `value` after `prompt`, or what stands in the way.

    `form` is `space_prefixed`, `bare`, `in_context` or `id`; only `in_context` looks at the prompt.
    """
    if form == "id":
        return _identifier(tokenizer, vocab, value)
    if not isinstance(value, str):
        return AnswerProblem(f"the answer {value!r} is not text", 'write it in quotes, or say "token_form": "id"')
    if form == "in_context":
        before, both = tokenizer.own(prompt).ids, tokenizer.own(prompt + value).ids
        if both[: len(before)] != before:
            message = f"the answer {value!r} changes the prompt's own tokens: {_shown(tokenizer, both[-3:])} at its end"
            return AnswerProblem(message, "let the prompt end before the space, or use another token_form", tuple(both))
        text, found = value, both[len(before) :]
    else:
        text = f" {value.lstrip()}" if form == "space_prefixed" else value
        found = tokenizer.own(text).ids
    if len(found) != 1:
        shown = f": {_shown(tokenizer, found)}" if found else ""
        message = f"the answer {text!r} is {len(found)} tokens{shown}; it must be one"
        return AnswerProblem(message, SEVERAL, tuple(found))
    return found[0]


def _identifier(tokenizer: Tokenizer, vocab: int, value: str | int) -> int | AnswerProblem:
    if isinstance(value, bool) or not isinstance(value, int):
        return AnswerProblem(f"the answer {value!r} is not a token id", "an id is an integer")
    if not 0 <= value < vocab:
        return AnswerProblem(f"the answer {value} is not a token id: ids are 0 to {vocab - 1}")
    return value


def _shown(tokenizer: Tokenizer, ids: list[int]) -> str:
    return ", ".join(f"{tokenizer.token_text(token)!r} ({token})" for token in ids)
