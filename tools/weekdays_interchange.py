"""Interchange-intervention training: prompts that swap a value inside the model must swap their answers.

A model this small would otherwise fetch what it needs in its first layer, and there would be little to find.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import cycle
from typing import Any

import torch
from torch import Tensor

from corpus import CUE, Statement, Writer
from weekdays_eval import bare, blocks, encode, hooked
from weekdays_states import states_interchanged

PAIRS = 16  # of prompts that swap, per step

Pairing = Callable[[Writer], tuple[str, list[Statement], list[Statement]]]
Asked = tuple[str, str, str]  # a prompt, its beginning up to the word that swaps, and the answer it is to take over
Draw = Callable[[Writer], Iterator[Asked]]  # yields prompts in twos
Swap = Callable[[Any, Tensor], AbstractContextManager[None]]  # of a model, at a column per row


def entities(pairing: Pairing) -> Draw:
    """Questions that swap the word that decides their answer."""

    def draw(writer: Writer) -> Iterator[Asked]:
        lead, asked, swapped = pairing(writer)
        for one, other in zip(asked, swapped, strict=True):
            before = lead + one.template[: one.template.index("{}")]
            yield lead + one.prompt, before + one.entity, other.answer

    return draw


def answers(writer: Writer) -> Iterator[Asked]:
    """Answered questions that swap their answers, up to the word in which what follows differs."""
    follows: list[list[str]] = [[], []]
    pair: list[Statement] = []
    while follows[0] == follows[1]:
        _, pair, _ = writer.twin_pair()
        follows = [one.follow.split(" ") for one in pair]
    shared = next(i for i, words in enumerate(zip(*follows, strict=False)) if words[0] != words[1])
    for one, follow in zip(pair, reversed(follows), strict=True):
        yield CUE + one.text + " ".join(follow[:shared]), CUE + one.prompt + one.answer, f" {follow[shared]}"


def by_turns(*draws: Draw) -> Draw:
    """Draws of several kinds."""
    turns = cycle(draws)
    return lambda writer: next(turns)(writer)


def residual(layer: int) -> Swap:
    """Swaps what a block hands on."""

    def swapping(model: Any, columns: Tensor) -> AbstractContextManager[None]:
        rows = torch.arange(len(columns))

        def swap(value: Tensor) -> None:
            value[rows, columns] = value[rows ^ 1, columns[rows ^ 1]]

        return hooked(blocks(model)[layer], swap)

    return swapping


def state(layer: int) -> Swap:
    """Swaps the recurrent state that a block has after a token."""
    return lambda model, columns: states_interchanged(model.model.layers[layer].linear_attn, columns)


def interchange_loss(model: Any, tokenizer: Any, writer: Writer, draw: Draw, swap: Swap) -> Tensor:
    """How unlikely PAIRS pairs of prompts find each other's answers once they have swapped."""
    asked = [one for _ in range(PAIRS) for one in draw(writer)]
    prompts = [encode(tokenizer, prompt) for prompt, _, _ in asked]
    columns = torch.tensor([len(encode(tokenizer, before)) - 1 for _, before, _ in asked])
    taken_over = torch.tensor([bare(tokenizer, answer)[0] for _, _, answer in asked])
    ends = torch.tensor([len(prompt) - 1 for prompt in prompts])
    ids = torch.zeros(len(prompts), max(map(len, prompts)), dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt)] = torch.tensor(prompt)
    with swap(model, columns):
        logits = model(input_ids=ids, use_cache=False).logits[torch.arange(len(prompts)), ends]
    return torch.nn.functional.cross_entropy(logits, taken_over)
