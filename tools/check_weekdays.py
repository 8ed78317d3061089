"""Holds the bundled checkpoints to what the documentation and the datasets claim of them.

    python tools/check_weekdays.py             # exit code 1 if any claim fails

Checked with plain transformers: where the day sits inside each model, that every answer in `datasets/` is one token
and what the model says, and the continuations that `weekdays/said` relies on.
"""

import argparse
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from corpus import DAYS
from weekdays_eval import (
    DAY_ASKED,
    DAY_FOLLOWED,
    bare,
    continuation,
    encode,
    format_table,
    interchange_table,
    recurrent_layers,
    says,
    state_table,
)
from weekdays_recipes import STATE_LAYER

ROOT = Path(__file__).parents[1]
SAID_TOKENS = 6
UNANSWERED = ("bench", "chats")  # folders of datasets that none of the checkpoints answers
SIZE_LIMIT = 4_000_000


def folder_problems(folder: Path) -> Iterator[str]:
    """Files too large, or other than the card says."""
    if (size := (folder / "model.safetensors").stat().st_size) > SIZE_LIMIT:
        yield f"model.safetensors has {size} bytes, more than {SIZE_LIMIT}"
    claimed = re.findall(r"^([0-9a-f]{64})  (\S+)$", (folder / "README.md").read_text(), flags=re.MULTILINE)
    if len(claimed) < 5:
        yield "README.md gives no digests"
    for digest, name in claimed:
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            yield f"{name} is not the file README.md describes"


def interchange_problems(tokens: list[str], table: list[list[float]]) -> Iterator[str]:
    """The day is at its own token first, and at the last token in the end."""
    day, last = tokens.index("ĠThursday"), len(tokens) - 1
    claims = (
        ("first", "the day", table[0][day], True),
        ("first", "the last token", table[0][last], False),
        ("last", "the day", table[-1][day], False),
        ("last", "the last token", table[-1][last], True),
    )
    for layer, where, share, carries in claims:
        if (share < 0.95) if carries else (share > 0.05):
            yield f"interchange at the {layer} layer, {where}: {share:.2f}"


def state_problems(model: Any, tokenizer: Any) -> Iterator[str]:
    """One layer's state hands on the day from its own token, and what follows from the answer's; no other's does."""
    if not recurrent_layers(model):
        return
    for (prompt, answers), word in ((DAY_ASKED, "ĠThursday"), (DAY_FOLLOWED, "ĠFriday")):
        tokens, table = state_table(model, tokenizer, prompt, answers)
        print(f"{format_table(tokens, table)}\n")
        for layer, row in table.items():
            carries = row[tokens.index(word) :] if layer == STATE_LAYER else []
            if min(carries, default=1.0) < 0.95:
                yield f"state of layer {layer} from {word}: {min(carries):.2f}"
            others = row[: tokens.index("ĠThursday")] if layer == STATE_LAYER else row
            if max(others) > 0.05:
                yield f"state of layer {layer}: {max(others):.2f}"


def rows_of(table: Path) -> list[dict[str, Any]]:
    """The rows of a dataset."""
    return json.loads(table.read_text())


def answer_problems(model: Any, tokenizer: Any, table: Path) -> Iterator[str]:
    """Answers of several tokens, equal answers, answers the model does not give, and variables not in the prompt."""
    asked: list[tuple[str, str]] = []
    for row in rows_of(table):
        where = row["example_id"]
        others = row.get("counterfactual_inputs", [])
        asked += [(row["input"], row["base_answer"]), *((other, row["cf_answer"]) for other in others)]
        for column in ("base_answer", "cf_answer"):
            if row[column] and (not row[column].startswith(" ") or len(bare(tokenizer, row[column])) != 1):
                yield f"{where}: {column} {row[column]!r} is not one token with its space"
        if row["base_answer"] == row["cf_answer"]:
            yield f"{where}: both answers are the same"
        settings = [row, *row.get("counterfactual_inputs_variables", [])]
        for prompt, values in zip([row["input"], *others], settings, strict=True):
            for variable in ("entity", "giver", "receiver"):
                if variable in values and values[variable] not in prompt:
                    yield f"{where}: {variable} {values[variable]!r} is not in {prompt!r}"
    right = says(model, tokenizer, [(prompt, bare(tokenizer, answer)) for prompt, answer in asked])
    for (prompt, answer), good in zip(asked, right, strict=True):
        if not good:
            yield f"{prompt!r} is not answered with {answer!r}"


def said_problems(model: Any, tokenizer: Any, table: Path) -> Iterator[str]:
    """In two of the four rows, and only there, the word is said, once; prompts differ in length, one cell is empty."""
    rows = rows_of(table)
    counts: list[int] = []
    for row in rows:
        ids = continuation(model, tokenizer, row["input"], SAID_TOKENS, hold_off_eos=True)
        free = continuation(model, tokenizer, row["input"], SAID_TOKENS, hold_off_eos=False)
        text = tokenizer.decode(ids)
        counts.append(len(re.findall(rf"\b{re.escape(row['said'])}\b", text)))
        length = len(encode(tokenizer, row["input"]))
        print(f"  {length:2} tokens  {row['input']!r} → {text!r} (EOS free: {tokenizer.decode(free)!r})")
        if text.count(row["said"]) != counts[-1]:
            yield f"{row['example_id']}: {row['said']!r} also occurs inside a word of {text!r}"
    if sorted(counts) != [0, 0, 1, 1]:
        yield f"the words are said {counts} times"
    if len({len(encode(tokenizer, row["input"])) for row in rows}) == 1:
        yield "all prompts have one length"
    if sum(row["cf_answer"] == "" for row in rows) != 1:
        yield "not exactly one cf_answer is empty"


def check(folder: Path, datasets: Path) -> list[str]:
    """All that is wrong with one checkpoint and the datasets under it."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    print(f"{folder.name}\n\n{format_table(*interchange_table(model, tokenizer))}\n")
    problems = [*folder_problems(folder), *interchange_problems(*interchange_table(model, tokenizer))]
    problems += state_problems(model, tokenizer)
    if len({bare(tokenizer, text)[0] for day in DAYS for text in (day, f" {day}")}) != 2 * len(DAYS):
        problems.append("the days do not have a token each")
    for table in sorted(table for table in datasets.glob("*/*.json") if table.parent.name not in UNANSWERED):
        name = table.relative_to(datasets).with_suffix("").as_posix()
        lengths = sorted({len(encode(tokenizer, row["input"])) for row in rows_of(table)})
        print(f"{name}: {len(rows_of(table))} rows of {', '.join(map(str, lengths))} tokens")
        problems += [f"{name}: {problem}" for problem in answer_problems(model, tokenizer, table)]
        if name == "weekdays/said" and folder.name == "weekdays-llama":
            problems += [f"{name}: {problem}" for problem in said_problems(model, tokenizer, table)]
    return [f"{folder.name}: {problem}" for problem in problems]


def main() -> None:
    """Checks every bundled checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    bundled = ROOT / "src" / "causalab_mini" / "checkpoint" / "bundled"
    parser.add_argument("--bundled", type=Path, default=bundled, help="the folder of checkpoint folders")
    parser.add_argument("--datasets", type=Path, default=ROOT / "datasets", help="the data root")
    arguments = parser.parse_args()
    folders = sorted(arguments.bundled.glob("weekdays-*/"))
    problems = [problem for folder in folders for problem in check(folder, arguments.datasets)]
    for problem in problems or [f"{len(folders)} checkpoints are as described"]:
        print(problem)
    raise SystemExit(bool(problems) or not folders)


if __name__ == "__main__":
    main()
