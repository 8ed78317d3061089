"""Which token a row goes on with under settings and sampling, read independently: plain arithmetic in double precision.

Settings act one after the other, in the order of `ORDER`, on the row's own tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

NEVER = -torch.inf
DRAWN = ("temperature", "top_k", "top_p", "min_p")


@dataclass(frozen=True)
class Row:
    """A row that goes on: its prompt, what it has said, how many tokens it says at most, and what ends a text."""

    prompt: list[int]
    said: list[int]
    steps: int
    ends: list[int]

    @property
    def text(self) -> list[int]:
        return self.prompt + self.said

    def following(self, text: Sequence[int], n: int) -> set[int]:
        """What comes in `text` after the last n − 1 tokens of the row."""
        before = self.text[len(self.text) - (n - 1) :]
        if len(self.text) < n:
            return set()
        return {text[i + n - 1] for i in range(len(text) - n + 1) if list(text[i : i + n - 1]) == before}


Act = Callable[[Tensor, object, Row], Tensor]


def _penalised(x: Tensor, tokens: Sequence[int], factor: float) -> Tensor:
    """Scores of some tokens, each once, lower by a factor: positive ones divided by it, negative ones multiplied."""
    new = x.clone()
    for token in set(tokens):
        new[token] = x[token] / factor if x[token] >= 0 else x[token] * factor
    return new


def _without(x: Tensor, tokens: Sequence[int] | set[int]) -> Tensor:
    new = x.clone()
    new[list(tokens)] = NEVER
    return new


def _only(x: Tensor, tokens: int | list[int]) -> Tensor:
    new = torch.full_like(x, NEVER)
    new[tokens] = 0
    return new


def _biased(x: Tensor, biases: Sequence[tuple[list[int], float]], row: Row) -> Tensor:
    new = x.clone()
    for (*before, last), bias in biases:
        if row.text[len(row.text) - len(before) :] == before:
            new[last] += bias
    return new


def _decayed(x: Tensor, start: int, factor: float, row: Row) -> Tensor:
    new, over = x.clone(), len(row.said) - start
    for end in row.ends if over > 0 else ():
        new[end] += x[end].abs() * (factor**over - 1) if x[end].isfinite() else 0
    return new


def _marked(x: Tensor, options: dict, row: Row) -> Tensor:
    """A hash of transformers' own; in single precision, as its bias is added."""
    from transformers.generation.logits_process import WatermarkLogitsProcessor

    mark = WatermarkLogitsProcessor(vocab_size=len(x), device="cpu", **options)
    return mark(torch.tensor([row.text]), x[None].float())[0].double()


def _likeliest(x: Tensor, k: int) -> Tensor:
    return x.masked_fill(x < x.sort(descending=True).values[min(k, len(x)) - 1], NEVER)


def _nucleus(x: Tensor, mass: float) -> Tensor:
    """The likeliest until they have this much together, the one that reaches it among them."""
    p, new, had = x.softmax(-1), torch.full_like(x, NEVER), 0.0
    for token in p.argsort(descending=True).tolist():
        new[token] = x[token]
        had += p[token].item()
        if had >= mass:
            break
    return new


def _near(x: Tensor, fraction: float) -> Tensor:
    p = x.softmax(-1)
    return x.masked_fill(p < fraction * p.max(), NEVER)


ORDER: dict[str, Act] = {
    "sequence_bias": lambda x, v, row: _biased(x, v, row),
    "encoder_repetition_penalty": lambda x, v, row: _penalised(x, row.prompt, 1 / v),
    "repetition_penalty": lambda x, v, row: _penalised(x, row.text, v),
    "no_repeat_ngram_size": lambda x, v, row: _without(x, row.following(row.text, v)),
    "encoder_no_repeat_ngram_size": lambda x, v, row: _without(x, row.following(row.prompt, v)),
    "bad_words_ids": lambda x, v, row: _biased(x, [(w, NEVER) for w in v if w not in [[e] for e in row.ends]], row),
    "min_length": lambda x, v, row: _without(x, row.ends) if len(row.text) < v else x,
    "min_new_tokens": lambda x, v, row: _without(x, row.ends) if len(row.said) < v else x,
    "forced_bos_token_id": lambda x, v, row: _only(x, v) if len(row.text) == 1 else x,
    "forced_eos_token_id": lambda x, v, row: _only(x, v) if len(row.said) == row.steps - 1 else x,
    "remove_invalid_values": lambda x, v, row: x.nan_to_num(0.0, posinf=3e38, neginf=-3e38) if v else x,
    "exponential_decay_length_penalty": lambda x, v, row: _decayed(x, *v, row),
    "suppress_tokens": lambda x, v, row: _without(x, v),
    "begin_suppress_tokens": lambda x, v, row: x if row.said else _without(x, v),
    "temperature": lambda x, v, row: x / v,
    "top_k": lambda x, v, row: _likeliest(x, v),
    "top_p": lambda x, v, row: _nucleus(x, v) if v < 1 else x,
    "min_p": lambda x, v, row: _near(x, v),
    "watermarking_config": lambda x, v, row: _marked(x, v, row),
    "renormalize_logits": lambda x, v, row: x.log_softmax(-1) if v else x,
}
"""What each setting makes of scores [V]."""


@dataclass(frozen=True)
class Choosing:
    """The settings that hold, those of sampling among them, by name; `seed` where tokens are drawn."""

    settings: dict[str, object]
    seed: int | None = None

    @classmethod
    def of(cls, layers: Sequence[dict], decode: int | dict) -> Choosing:
        """Settings of layers, the weakest first: the strongest that says something of one decides it."""
        held: dict[str, object] = {}
        for layer in layers:
            held |= layer
        if held.get("min_new_tokens") is not None:
            held.pop("min_length", None)
        sample = dict((decode.get("sample") if isinstance(decode, dict) else None) or {})
        seed = sample.pop("seed", None)
        settings = {name: value for name, value in held.items() if name not in DRAWN and not _idle(name, value)}
        settings |= {name: value for name, value in sample.items() if value is not None}
        return cls({name: settings[name] for name in ORDER if name in settings}, seed)

    @property
    def acts(self) -> bool:
        """Whether another token may be said than the likeliest."""
        return bool(self.settings) or self.seed is not None

    def pick(self, row: Row, logits: Tensor, example_id: str, held: Sequence[int]) -> int:
        """The token after what a row has said, given logits [V]; of `held` ids none."""
        scores = _without(logits.double(), held)
        for name, value in self.settings.items():
            scores = ORDER[name](scores, value, row)
        scores = _without(scores, held)
        if self.seed is not None:
            scores = scores + noise(self.seed, example_id, len(row.said), len(scores))
        return int(scores.argmax())


def _idle(name: str, value: object) -> bool:
    """Whether a setting says that nothing is to change."""
    return value is None or value in ([], 0) or (name.endswith("repetition_penalty") and value == 1)


def noise(seed: int, example_id: str, step: int, width: int) -> Tensor:
    """−log(−log u) [width]."""
    start = int(hashlib.sha256(f"{seed}:{example_id}:{step}".encode()).hexdigest()[:16], 16) % 2**63
    u = torch.rand(width, generator=torch.Generator().manual_seed(start), dtype=torch.float64)
    return -torch.log(-torch.log(u))
