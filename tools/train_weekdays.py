"""Trains the checkpoints that ship with the package, from text this repository writes itself.

    python tools/train_weekdays.py             # all, one after the other
    python tools/train_weekdays.py llama       # one of them

Everything is seeded and runs on one thread, so a second run on the same machine writes the same bytes.
"""

import argparse
import hashlib
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor
from transformers import GenerationConfig, PreTrainedTokenizerFast

from corpus import DAYS, LONG_WORDS, MONTHS, NAMES, Writer, held_out_statements
from weekdays_eval import (
    DAY_ASKED,
    DAY_FOLLOWED,
    accuracy,
    format_table,
    interchange_table,
    recurrent_layers,
    state_table,
)
from weekdays_interchange import interchange_loss
from weekdays_recipes import CONTEXT, ENTITY_LAYERS, RECIPES, STATE_LAYER, Stage
from weekdays_states import short_chunks

BUNDLED = Path(__file__).parents[1] / "src" / "causalab_mini" / "checkpoint" / "bundled"
DOCUMENTS = 60_000
TEMPLATES = Path(__file__).parent
BATCH = 64
ANSWER_WEIGHT = 4.0
TOKEN_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")

Document = list[tuple[str, bool]]
Example = tuple[list[int], list[float]]  # tokens, and how much predicting each counts


def train_tokenizer(specials: tuple[str, ...], documents: list[Document]) -> PreTrainedTokenizerFast:
    """A byte-level BPE in which every word of the text is one token, but for those in LONG_WORDS."""
    texts = ["".join(piece for piece, _ in document) for document in documents]
    texts = [text for text in texts if not any(word in text for word in LONG_WORDS)]
    texts += [*DAYS, *MONTHS, *NAMES] * 50  # also as the first word of a text
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4096,
        min_frequency=2,
        special_tokens=list(specials),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    if "<s>" in specials:
        bpe.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", bpe.token_to_id("<s>"))]
        )
    named = dict(zip(("pad_token", "eos_token", "bos_token"), reversed(specials), strict=False))
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, model_max_length=CONTEXT, clean_up_tokenization_spaces=False, **named
    )


def check_tokenizer(tokenizer: Any) -> None:
    """Days, months and short names are single tokens in both spellings; the long words are not."""
    seen: set[int] = set()
    for word in (*DAYS, *MONTHS, *NAMES):
        for text in (word, f" {word}"):
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
            if len(ids) != 1 or ids[0] in seen:
                raise SystemExit(f"{text!r} is not one token of its own: {ids}")
            seen.add(ids[0])
    for word in LONG_WORDS:
        if len(tokenizer(f" {word}", add_special_tokens=False)["input_ids"]) == 1:
            raise SystemExit(f"{word!r} is one token")


def encode_document(tokenizer: Any, document: Document) -> Example:
    """Tokens with their weights; BOS and the first token of a text without one are never predicted."""
    ids: list[int] = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
    weights = [0.0] * len(ids)
    for piece, is_answer in document:
        tokens = tokenizer(piece, add_special_tokens=False)["input_ids"]
        ids += tokens
        weights += [ANSWER_WEIGHT if is_answer else 1.0] * len(tokens)
    return [*ids, tokenizer.eos_token_id], [*weights, 1.0]


def batches(examples: list[Example], seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Shuffled batches of documents of like length, padded on the right with weight zero."""
    shuffled = random.Random(seed)
    order = list(range(len(examples)))
    shuffled.shuffle(order)
    pool = BATCH * 50
    for start in range(0, len(order), pool):
        near = sorted(order[start : start + pool], key=lambda i: len(examples[i][0]))
        cuts = [near[cut : cut + BATCH] for cut in range(0, len(near), BATCH)]
        shuffled.shuffle(cuts)
        for cut in cuts:
            width = max(len(examples[i][0]) for i in cut)
            ids = torch.zeros(len(cut), width, dtype=torch.long)
            weights = torch.zeros(len(cut), width)
            for row, i in enumerate(cut):
                tokens, counts = examples[i]
                ids[row, : len(tokens)] = torch.tensor(tokens)
                weights[row, : len(tokens)] = torch.tensor(counts)
            yield ids, weights


def train(model: Any, tokenizer: Any, examples: list[Example], stage: Stage) -> None:
    """AdamW over the text, as often as the stage says, with a short warm-up and a cosine decay."""
    writer = Writer(seed=1)
    examples = examples[: stage.documents]
    steps = stage.epochs * -(-len(examples) // BATCH)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=stage.rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, stage.rate, total_steps=steps, pct_start=0.06, cycle_momentum=False
    )
    model.train()
    latest = [""] * len(stage.interchanges)
    done, started = 0, time.perf_counter()
    for epoch in range(stage.epochs):
        for ids, weights in batches(examples, seed=epoch):
            logits = model(input_ids=ids, use_cache=False).logits[:, :-1]
            losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
            counts = weights[:, 1:].flatten()
            loss = (losses * counts).sum() / counts.sum()
            turn = done % len(stage.interchanges)
            swapped = interchange_loss(model, tokenizer, writer, *stage.interchanges[turn])
            latest[turn] = f"{swapped.item():.3f}"
            optimizer.zero_grad()
            (loss + swapped).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            done += 1
            if done % 100 == 0 or done == steps:
                passed = time.perf_counter() - started
                swaps = " ".join(latest)
                print(f"step {done}/{steps}  loss {loss.item():.3f}  interchanged {swaps}  {passed:.0f} s", flush=True)
    model.eval()


def save(folder: Path, model: Any, tokenizer: Any) -> None:
    """Writes a folder that `from_pretrained` loads."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = {key: getattr(tokenizer, key) for key in TOKEN_IDS}
    model.generation_config = GenerationConfig(do_sample=False, **ids)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)
    for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
        fields = json.loads((folder / name).read_text())
        if "tokenizer_class" in fields:
            fields["tokenizer_class"] = "PreTrainedTokenizerFast"  # the name every version knows
        (folder / name).write_text(json.dumps(fields, indent=2, sort_keys=True) + "\n")


def states_section(model: Any, tokenizer: Any) -> str:
    """What the card says of the recurrent state; empty without recurrent layers."""
    if not recurrent_layers(model):
        return ""
    asked, followed = (format_table(*state_table(model, tokenizer, *kind)) for kind in (DAY_ASKED, DAY_FOLLOWED))
    template = (TEMPLATES / "weekdays_card_states.md").read_text()
    return template.format(state_layer=STATE_LAYER, asked=asked, followed=followed)


def write_card(folder: Path, model: Any, tokenizer: Any, examples: list[Example], epochs: int) -> float:
    """Measures, prints and writes the model card; returns the accuracy over all held-out questions."""
    table = accuracy(model, tokenizer, held_out_statements())
    hits, asked = (sum(column) for column in zip(*table.values(), strict=True))
    shares = [f"| {task} | {right} / {total} | {right / total:.2%} |" for task, (right, total) in table.items()]
    shares.append(f"| **all** | {hits} / {asked} | {hits / asked:.2%} |")
    digests = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"
        for path in sorted(folder.iterdir())
        if path.suffix in (".json", ".safetensors")
    ]
    template = (TEMPLATES / "weekdays_card.md").read_text()
    bos = "The tokenizer writes a BOS token in front of a text." if tokenizer.bos_token_id is not None else "No BOS."
    card = template.format(
        name=folder.name,
        architecture=type(model).__name__,
        layers=model.config.num_hidden_layers,
        parameters=f"{sum(p.numel() for p in model.parameters()):,}",
        vocabulary=len(tokenizer),
        bos=bos,
        documents=f"{len(examples):,}",
        tokens=f"{sum(len(ids) for ids, _ in examples):,}",
        epochs=epochs,
        accuracy="\n".join(shares),
        entity_layer=max(ENTITY_LAYERS),
        interchange=format_table(*interchange_table(model, tokenizer)),
        states=states_section(model, tokenizer),
        digests="\n".join(digests),
    )
    (folder / "README.md").write_text(card)
    print(card)
    return hits / asked


def main() -> None:
    """Trains the checkpoints asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", default=list(RECIPES), help=f"{', '.join(RECIPES)} (default: all)")
    parser.add_argument("--out", type=Path, default=BUNDLED, help="where the checkpoint folders go")
    arguments = parser.parse_args()
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    documents = Writer(seed=0).documents(DOCUMENTS)
    for name in arguments.names:
        started, recipe = time.perf_counter(), RECIPES[name]
        torch.manual_seed(0)
        tokenizer = train_tokenizer(recipe.specials, documents)
        check_tokenizer(tokenizer)
        ids = {key: getattr(tokenizer, key) for key in TOKEN_IDS}
        model = recipe.build(vocab_size=len(tokenizer), **ids)
        examples = [encode_document(tokenizer, document) for document in documents]
        with short_chunks():
            for stage in recipe.stages:
                train(model, tokenizer, examples, stage)
        folder = arguments.out / f"weekdays-{name}"
        save(folder, model, tokenizer)
        share = write_card(folder, model, tokenizer, examples, recipe.stages[0].epochs)
        print(f"{folder.name}: {time.perf_counter() - started:.0f} s")
        if share < 0.99:
            raise SystemExit(f"{folder.name} answers only {share:.2%} of the held-out questions")


if __name__ == "__main__":
    main()
