"""Writes the example datasets from the facts in `corpus.py`; `check_weekdays.py` holds the checkpoints to them.

python tools/make_datasets.py
"""

import argparse
import json
from pathlib import Path
from typing import Any

from corpus import CAPITAL_OF, CAPITALS, CUE, DAYS, GIVE, NEXT_DAY, PREVIOUS_DAY, day_follow

DATASETS = Path(__file__).parents[1] / "datasets"

Row = dict[str, Any]
ANSWERS = ("base_answer", "cf_answer")


def day_row(template: str, step: int, day: str, other: str, split: str) -> Row:
    """A prompt about one day, paired with the same prompt about another."""
    return {
        "example_id": f"{day}-{other}".lower(),
        "input": template.format(day),
        "counterfactual_inputs": [template.format(other)],
        "base_answer": f" {DAYS[(DAYS.index(day) + step) % 7]}",
        "cf_answer": f" {DAYS[(DAYS.index(other) + step) % 7]}",
        "entity": day,
        "counterfactual_inputs_variables": [{"entity": other}],
        "split": split,
    }


def weekdays_train() -> list[Row]:
    """Four rows of one length."""
    pairs = (("Thursday", "Monday"), ("Monday", "Friday"), ("Saturday", "Tuesday"), ("Wednesday", "Saturday"))
    return [day_row(NEXT_DAY[0], 1, day, other, "train") for day, other in pairs]


def weekdays_full() -> list[Row]:
    """All 42 ordered pairs of the same prompt, a third of them for testing."""
    return [
        day_row(NEXT_DAY[0], 1, a, b, "test" if (i + 2 * j) % 3 == 0 else "train")
        for i, a in enumerate(DAYS)
        for j, b in enumerate(DAYS)
        if a != b
    ]


def weekdays_data() -> list[Row]:
    """The day after and the day before, six wordings of unequal length."""
    wordings = [(template, 1) for template in NEXT_DAY[:4]] + [(template, -1) for template in PREVIOUS_DAY[:2]]
    rows: list[Row] = []
    for t, (template, step) in enumerate(wordings):
        for i, day in enumerate(DAYS):
            other = DAYS[(i + t + 1) % 7]
            row = day_row(template, step, day, other, "test" if (i + t) % 4 == 3 else "train")
            rows.append({**row, "example_id": f"{t}-{row['example_id']}"})
    return rows


def weekdays_said() -> list[Row]:
    """Four prompts of unequal length, and a word that two of them go on to say once EOS is held off."""
    cells = (
        (NEXT_DAY[0].format("Thursday"), " Friday", " Tuesday"),
        (NEXT_DAY[1].format("Friday"), " Saturday", " Wednesday"),
        (CUE + NEXT_DAY[2].format("Monday"), " Tuesday", ""),
        (CUE + NEXT_DAY[3].format("Saturday"), " Sunday", " Thursday"),
    )
    return [
        {
            "example_id": f"said-{number}",
            "input": prompt,
            "said": "work",
            "base_answer": base,
            "cf_answer": other,
            "split": "all",
        }
        for number, (prompt, base, other) in enumerate(cells)
    ]


def weekdays_endings() -> list[Row]:
    """Prompts that promise a second sentence, and what may follow: the right day or another, with what fits it or not.

    What fits the right day never fits the wrong one.
    """
    rows: list[Row] = []
    for number, (day, wrong) in enumerate(zip(DAYS, ("Saturday", "Sunday") * 2 + ("Monday", "Tuesday"), strict=False)):
        right = DAYS[(number + 1) % 7]
        follow, other = day_follow(right, past=False), day_follow(wrong, past=False)
        rows.append(
            {
                "example_id": f"{right}-{wrong}".lower(),
                "input": f"{CUE}{NEXT_DAY[0].format(day)}",
                "right_fits": f" {right}.{follow}",
                "right_other": f" {right}.{other}",
                "wrong_fits": f" {wrong}.{other}",
                "wrong_other": f" {wrong}.{follow}",
                "base_answer": f" {right}",
                "cf_answer": f" {wrong}",
                "entity": day,
                "split": "all",
            }
        )
    return rows


def weekdays_notes() -> list[Row]:
    """Pairs of prompts that promise a second sentence, which ends otherwise for the one day than for the other."""
    rows: list[Row] = []
    for a, b in ((a, b) for a in DAYS for b in DAYS if a != b):
        row = day_row(f"{CUE}{NEXT_DAY[0]}", 1, a, b, "train" if len(rows) % 4 else "test")
        endings = [day_follow(row[column].strip(), past=False).split(".")[0].split()[1] for column in ANSWERS]
        if endings[0] != endings[1]:
            rows.append({**row, "base_ending": f" {endings[0]}", "cf_ending": f" {endings[1]}"})
    return rows


def names_give() -> list[Row]:
    """Who receives it, paired with the same sentence in which the other one gives."""
    scenes = (
        *(("Mary", "John", "store", "drink"), ("Anna", "Tom", "park", "book"), ("Sara", "Paul", "supermarket", "ring")),
        *(("Kate", "James", "school", "letter"), ("Lucy", "David", "garden", "watermelon")),
        *(("Emma", "Peter", "observatory", "ticket"), ("Alice", "Henry", "library", "flower")),
        ("Laura", "Simon", "station", "screwdriver"),
    )
    rows: list[Row] = []
    for number, (first, second, place, thing) in enumerate(scenes):
        for giver, receiver in ((second, first), (first, second)):
            template = GIVE[number % len(GIVE)]
            told = {"a": first, "b": second, "place": place, "thing": thing}
            rows.append(
                {
                    "example_id": f"{giver}-to-{receiver}".lower(),
                    "input": template.format(**told, giver=giver),
                    "counterfactual_inputs": [template.format(**told, giver=receiver)],
                    "base_answer": f" {receiver}",
                    "cf_answer": f" {giver}",
                    "giver": giver,
                    "receiver": receiver,
                    "counterfactual_inputs_variables": [{"giver": receiver, "receiver": giver}],
                    "split": "test" if number % 4 == 3 else "train",
                }
            )
    return rows


def capitals_facts() -> list[Row]:
    """Twelve countries, each paired with another."""
    facts = dict(fact.split() for some in CAPITALS.values() for fact in some)
    countries = (
        *("France", "Germany", "Italy", "Spain", "Greece", "Norway", "Japan", "Thailand", "Egypt", "Kenya"),
        *("Canada", "Peru"),
    )
    rows: list[Row] = []
    for number, country in enumerate(countries):
        other = countries[(number + 5) % len(countries)]
        rows.append(
            {
                "example_id": f"{country}-{other}".lower(),
                "input": CAPITAL_OF[0].format(country),
                "counterfactual_inputs": [CAPITAL_OF[0].format(other)],
                "base_answer": f" {facts[country]}",
                "cf_answer": f" {facts[other]}",
                "entity": country,
                "counterfactual_inputs_variables": [{"entity": other}],
                "split": "test" if number % 3 == 2 else "train",
            }
        )
    return rows


def chats_capitals() -> list[Row]:
    """Two questions in one chat, the first answered; paired with a chat whose second question is about another land."""
    facts = {"England": "London", "Italy": "Rome", "Germany": "Berlin", "Spain": "Madrid", "Japan": "Tokyo"}
    question = "What is the capital of {}?"

    def talk(first: str, second: str) -> list[dict[str, str]]:
        return [
            {"role": "user", "content": question.format(first)},
            {"role": "assistant", "content": facts[first]},
            {"role": "user", "content": question.format(second)},
        ]

    return [
        {
            "example_id": f"{first}-{land}-{other}".lower(),
            "input": talk(first, land),
            "counterfactual_inputs": [talk(first, other)],
            "base_answer": facts[land],
            "cf_answer": facts[other],
            "country": land,
            "counterfactual_inputs_variables": [{"country": other}],
        }
        for first in ("Germany", "Spain", "Japan")
        for land, other in (("England", "Italy"), ("Italy", "England"))
    ]


TABLES = {
    "weekdays/train": weekdays_train,
    "weekdays/said": weekdays_said,
    "weekdays/endings": weekdays_endings,
    "weekdays/notes": weekdays_notes,
    "weekdays/data": weekdays_data,
    "weekdays/full": weekdays_full,
    "names/give": names_give,
    "capitals/facts": capitals_facts,
    "chats/capitals": chats_capitals,
}


def main() -> None:
    """Writes every table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=DATASETS, help="the data root")
    root: Path = parser.parse_args().out
    for name, make in TABLES.items():
        path = root / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = make()
        path.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
        print(f"{name}: {len(rows)} rows")


if __name__ == "__main__":
    main()
