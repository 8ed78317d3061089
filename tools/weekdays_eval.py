"""What is measured of a trained checkpoint: accuracy on held-out statements, and where the day sits inside it."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from corpus import CUE, DAYS, Statement

POSITION_PROMPT = "If today is {}, tomorrow is"
NEXT_DAYS = (*DAYS[1:], DAYS[0])
# Prompts about a day and the next one, and what comes after them.
DAY_ASKED = (POSITION_PROMPT, tuple(f" {day}" for day in NEXT_DAYS))
DAY_FOLLOWED = (
    f"{CUE}{POSITION_PROMPT} {{}}. We",
    tuple(" rest" if day in ("Saturday", "Sunday") else " work" for day in NEXT_DAYS),
)


def encode(tokenizer: Any, text: str) -> list[int]:
    """A prompt as the model reads it: with BOS where the tokenizer writes one."""
    return tokenizer(text)["input_ids"]


def bare(tokenizer: Any, text: str) -> list[int]:
    """Text that continues a prompt: never with BOS."""
    return tokenizer(text, add_special_tokens=False)["input_ids"]


@torch.no_grad()
def says(model: Any, tokenizer: Any, pairs: Sequence[tuple[str, list[int]]]) -> list[bool]:
    """Whether greedy decoding of each prompt begins with the given tokens."""
    right: list[bool] = []
    for start in range(0, len(pairs), 64):
        chunk = [(encode(tokenizer, prompt), answer) for prompt, answer in pairs[start : start + 64]]
        width = max(len(prompt) + len(answer) for prompt, answer in chunk)
        ids = torch.zeros(len(chunk), width, dtype=torch.long)
        for row, (prompt, answer) in enumerate(chunk):
            ids[row, : len(prompt) + len(answer)] = torch.tensor(prompt + answer)
        best = model(input_ids=ids).logits.argmax(-1)  # right padding is invisible to a causal model
        for row, (prompt, answer) in enumerate(chunk):
            right.append(best[row, len(prompt) - 1 : len(prompt) + len(answer) - 1].tolist() == answer)
    return right


def accuracy(model: Any, tokenizer: Any, statements: Sequence[Statement]) -> dict[str, tuple[int, int]]:
    """(right, asked) per task; also whether a sentence stops without the cue and goes on with it."""
    asked: list[tuple[str, str, list[int]]] = []
    for one in statements:
        answer = bare(tokenizer, one.answer)
        asked += [(one.task, lead + one.prompt, answer) for lead in ("", CUE, "Mary says: ")]
        asked.append(("stops", one.text, [tokenizer.eos_token_id]))
        asked.append(("goes on after the cue", CUE + one.text, bare(tokenizer, one.follow)))
    right = says(model, tokenizer, [(prompt, answer) for _, prompt, answer in asked])
    table: dict[str, tuple[int, int]] = {}
    for (task, _, _), good in zip(asked, right, strict=True):
        hits, total = table.get(task, (0, 0))
        table[task] = (hits + good, total + 1)
    return table


def blocks(model: Any) -> list[torch.nn.Module]:
    """The decoder blocks, in order."""
    return list(model.model.layers if hasattr(model, "model") else model.transformer.h)


@contextmanager
def hooked(module: torch.nn.Module, edit: Callable[[Tensor], None]) -> Generator[None]:
    """Let `edit` see, and change in place, what a block hands on."""

    def hook(_module: torch.nn.Module, _inputs: Any, output: Any) -> None:
        edit(output[0] if isinstance(output, tuple) else output)

    handle = module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


@torch.no_grad()
def interchange_table(model: Any, tokenizer: Any) -> tuple[list[str], list[list[float]]]:
    """Tokens of the prompt, and per layer and token the share of the 42 day pairs that take over the other's answer."""
    pairs = [(a, b) for a in range(7) for b in range(7) if a != b]
    ids = torch.tensor([encode(tokenizer, POSITION_PROMPT.format(day)) for day in DAYS])
    answers = torch.tensor([bare(tokenizer, f" {DAYS[(i + 1) % 7]}")[0] for i in range(7)])
    base, other = torch.tensor(pairs).T
    table: list[list[float]] = []
    for block in blocks(model):
        kept: list[Tensor] = []
        with hooked(block, lambda value, kept=kept: kept.append(value.clone())):
            model(input_ids=ids)
        row: list[float] = []
        for position in range(ids.shape[1]):

            def put(value: Tensor, kept: list[Tensor] = kept, position: int = position) -> None:
                value[:, position] = kept[0][other, position]

            with hooked(block, put):
                best = model(input_ids=ids[base]).logits[:, -1].argmax(-1)
            row.append((best == answers[other]).float().mean().item())
        table.append(row)
    return tokenizer.convert_ids_to_tokens(ids[3].tolist()), table


def recurrent_layers(model: Any) -> list[int]:
    """The layers that hand a state from token to token."""
    return [layer for layer, block in enumerate(blocks(model)) if hasattr(block, "linear_attn")]


@torch.no_grad()
def state_table(
    model: Any, tokenizer: Any, prompt: str, answers: Sequence[str]
) -> tuple[list[str], dict[int, list[float]]]:
    """Tokens of the prompt, and per recurrent layer and token the share of day pairs that take over the other's answer.

    The layer's state after the token is put into the cache from which the rest of the prompt goes on. Pairs are those
    whose answers differ.
    """
    ids = torch.tensor([encode(tokenizer, prompt.format(*days)) for days in zip(DAYS, NEXT_DAYS, strict=True)])
    said = torch.tensor([bare(tokenizer, answer)[0] for answer in answers])
    base, other = torch.tensor([(a, b) for a in range(7) for b in range(7) if answers[a] != answers[b]]).T
    table: dict[int, list[float]] = {layer: [] for layer in recurrent_layers(model)}
    for layer, row in table.items():
        for end in range(1, ids.shape[1]):
            own, theirs = (model(input_ids=ids[days, :end], use_cache=True).cache for days in (base, other))
            own.layers[layer].recurrent_states[0].copy_(theirs.layers[layer].recurrent_states[0])
            best = model(input_ids=ids[base, end:], cache=own).logits[:, -1].argmax(-1)
            row.append((best == said[other]).float().mean().item())
    return tokenizer.convert_ids_to_tokens(ids[3, :-1].tolist()), table


@torch.no_grad()
def continuation(model: Any, tokenizer: Any, prompt: str, count: int, hold_off_eos: bool) -> list[int]:
    """Greedy tokens after a prompt; with EOS held off its logit never wins."""
    ids, said = encode(tokenizer, prompt), list[int]()
    while len(said) < count:
        logits = model(input_ids=torch.tensor([ids + said])).logits[0, -1]
        if hold_off_eos:
            logits[tokenizer.eos_token_id] = -torch.inf
        said.append(int(logits.argmax()))
        if said[-1] == tokenizer.eos_token_id:
            break
    return said


def format_table(tokens: list[str], table: Sequence[list[float]] | Mapping[int, list[float]]) -> str:
    """The table of layers and positions as Markdown."""
    head = ["layer", *(f"`{token.replace('Ġ', ' ')}`" for token in tokens)]
    lines = [head, ["---:"] * len(head)]
    rows = table.items() if isinstance(table, Mapping) else enumerate(table)
    lines += [[str(layer), *(f"{share:.2f}" for share in row)] for layer, row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
