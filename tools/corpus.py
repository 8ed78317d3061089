"""The text the bundled checkpoints are trained on: templates filled with a few dozen facts.

A `Statement` is one sentence in three parts (prompt, answer, and the sentence that may follow it). Statements are
enumerated, never drawn, so whether one is *held out* is a property of its template and its entity: a held-out
statement is absent from the training text in every form, alone, behind a lead or inside a story.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
NUMBERS = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
CAPITALS = {
    "Europe": (
        *("France Paris", "Germany Berlin", "Italy Rome", "Spain Madrid", "Portugal Lisbon", "Austria Vienna"),
        *("Greece Athens", "Poland Warsaw", "Norway Oslo", "Sweden Stockholm", "Finland Helsinki", "Ireland Dublin"),
        *("Hungary Budapest", "England London"),
    ),
    "Asia": ("Japan Tokyo", "China Beijing", "Thailand Bangkok", "Vietnam Hanoi", "Nepal Kathmandu", "Iran Tehran"),
    "Africa": ("Egypt Cairo", "Kenya Nairobi", "Ghana Accra", "Morocco Rabat", "Senegal Dakar"),
    "America": ("Canada Ottawa", "Cuba Havana", "Peru Lima", "Chile Santiago", "Ecuador Quito"),
}
NAMES = (
    *("Mary", "John", "Anna", "Tom", "Sara", "Paul", "Kate", "James", "Lucy", "Mark", "Emma", "David"),
    *("Alice", "Peter", "Laura", "Henry", "Nina", "Oscar", "Clara", "Simon", "Julia", "Felix", "Rosa", "Martin"),
)
PLACES = ("store", "park", "school", "garden", "station", "library")
OBJECTS = ("drink", "book", "ring", "letter", "flower", "ticket")
# Words the tokenizer never sees whole, so that they are several tokens and rows differ in length.
LONG_NAMES = ("Bartholomew", "Wilhelmina", "Cornelius", "Theodora", "Maximilian", "Guinevere")
LONG_PLACES = ("supermarket", "observatory")
LONG_OBJECTS = ("screwdriver", "watermelon")
LONG_WORDS = (*LONG_NAMES, *LONG_PLACES, *LONG_OBJECTS)

CUE = "Note: "  # promises that one more sentence follows
STORY = "Story: "  # promises several sentences

NEXT_DAY = (
    "If today is {}, tomorrow is",
    "The day after {} is",
    "If yesterday was {}, today is",
    "Today is {}, so tomorrow will be",
    "After {} comes",
    "The shop is closed on {}, so come back on",
)
PREVIOUS_DAY = (
    "If today is {}, yesterday was",
    "The day before {} is",
    "If tomorrow is {}, today is",
    "Today is {}, so yesterday was",
    "Before {} comes",
    "The party is on {}, so bake the cake on",
)
NEXT_MONTH = (
    "The month after {} is",
    "If this month is {}, next month is",
    "This month is {}, so next month will be",
    "After {} comes",
    "The lake is closed in {}, so come back in",
)
PREVIOUS_MONTH = (
    "The month before {} is",
    "If this month is {}, last month was",
    "This month is {}, so last month was",
    "Before {} comes",
)
NEXT_NUMBER = ("The number after {} is", "After {} comes", "If you add one to {}, you get", "One more than {} is")
PREVIOUS_NUMBER = (
    "The number before {} is",
    "Before {} comes",
    "If you take one from {}, you get",
    "One less than {} is",
)
COUNTING = "We count {}, {}, {},"
CAPITAL_OF = (
    "The capital of {} is",
    "In {}, the capital is",
    "The largest city of {} is called",
    "Whoever goes to {} should see",
    "The trains of {} all go to",
)
COUNTRY_OF = ("{} is the capital of", "The city of {} is in", "To see {}, go to", "{} lies in")
GIVE = (
    "When {a} and {b} went to the {place}, {giver} gave a {thing} to",
    "{a} and {b} were at the {place}, and {giver} handed a {thing} to",
    "After {a} and {b} left the {place}, {giver} sold a {thing} to",
    "At the {place}, {a} met {b}, and {giver} showed a {thing} to",
)


@dataclass(frozen=True)
class Statement:
    """One sentence: `prompt` + `answer` + ".", and what comes next where something does."""

    task: str
    prompt: str
    answer: str  # with its leading space
    follow: str  # with its leading space, empty where nothing can follow
    held_out: bool
    template: str
    entity: str = ""  # the one word of the prompt that decides the answer, where there is one

    @property
    def text(self) -> str:
        """The whole sentence, up to its full stop."""
        return f"{self.prompt}{self.answer}."


def day_follow(day: str, past: bool) -> str:
    """What the text says about a day that was reached."""
    if day in ("Saturday", "Sunday"):
        return " We rested." if past else " We rest."
    return " We worked hard." if past else " We work hard."


def month_follow(month: str) -> str:
    """The season of a month."""
    return f" It is {('winter', 'spring', 'summer', 'autumn')[(MONTHS.index(month) + 1) % 12 // 3]}."


def number_follow(number: str) -> str:
    """Whether a number is even."""
    return f" It is {('odd', 'even')[NUMBERS.index(number) % 2]}."


def days() -> Iterator[Statement]:
    """Each day under each template; one day of seven is held out of each template."""
    for step, task, templates in ((1, "next day", NEXT_DAY), (-1, "previous day", PREVIOUS_DAY)):
        for t, template in enumerate(templates):
            for i, day in enumerate(DAYS):
                answer = DAYS[(i + step) % 7]
                follow = day_follow(answer, past=step < 0)
                held_out = (i + 3 * t + step) % 7 == 0
                yield Statement(task, template.format(day), f" {answer}", follow, held_out, template, day)


def months() -> Iterator[Statement]:
    """Each month under each template; one month of twelve is held out of each template."""
    for step, task, templates in ((1, "next month", NEXT_MONTH), (-1, "previous month", PREVIOUS_MONTH)):
        for t, template in enumerate(templates):
            for i, month in enumerate(MONTHS):
                answer = MONTHS[(i + step) % 12]
                held_out = (i + 5 * t + 2 * step) % 12 == 0
                follow = month_follow(answer)
                yield Statement(task, template.format(month), f" {answer}", follow, held_out, template, month)


def numbers() -> Iterator[Statement]:
    """Neighbours of a number word, and runs of four of them."""
    for step, task, templates in ((1, "next number", NEXT_NUMBER), (-1, "previous number", PREVIOUS_NUMBER)):
        for t, template in enumerate(templates):
            for i, number in enumerate(NUMBERS):
                if 0 <= i + step < len(NUMBERS):
                    answer = NUMBERS[i + step]
                    held_out = (i + 3 * t + step) % 10 == 0
                    follow = number_follow(answer)
                    yield Statement(task, template.format(number), f" {answer}", follow, held_out, template, number)
    for i in range(len(NUMBERS) - 3):
        first, second, third, answer = NUMBERS[i : i + 4]
        prompt = COUNTING.format(first, second, third)
        yield Statement("counting", prompt, f" {answer}", number_follow(answer), i % 8 == 3, COUNTING)


def capitals() -> Iterator[Statement]:
    """Countries and their capitals; a pair is held out of one template of nine."""
    facts = [(*fact.split(), continent) for continent, some in CAPITALS.items() for fact in some]
    for i, (country, city, continent) in enumerate(facts):
        follow = f" It is in {continent}."
        for t, template in enumerate(CAPITAL_OF):
            held_out = (i + t) % 9 == 0
            yield Statement("capital", template.format(country), f" {city}", follow, held_out, template, country)
        for t, template in enumerate(COUNTRY_OF, start=len(CAPITAL_OF)):
            held_out = (i + t) % 9 == 0
            yield Statement("country", template.format(city), f" {country}", follow, held_out, template, city)


@cache
def give_pairs(held_out: bool) -> list[tuple[int, str, str]]:
    """Template and two names; each template holds out an eighth of the pairs."""
    return [
        (t, a, b)
        for (i, a), (j, b) in combinations(enumerate(NAMES + LONG_NAMES), 2)
        for t in range(len(GIVE))
        if ((7 * i + 3 * j + t) % 8 == 0) == held_out
    ]


def give(seed: random.Random, held_out: bool) -> Statement:
    """Who receives what: two names, in either order, one of which gives to the other."""
    template, *pair = seed.choice(give_pairs(held_out))
    seed.shuffle(pair)
    giver, receiver = seed.sample(pair, 2)
    prompt = GIVE[template].format(
        a=pair[0],
        b=pair[1],
        giver=giver,
        place=seed.choice(PLACES * 2 + LONG_PLACES),
        thing=seed.choice(OBJECTS * 2 + LONG_OBJECTS),
    )
    return Statement("give", prompt, f" {receiver}", f" {receiver} thanked {giver}.", held_out, GIVE[template])


def enumerated() -> list[Statement]:
    """Every statement but those about giving, which are too many to list."""
    return [*days(), *months(), *numbers(), *capitals()]


def held_out_statements(gives: int = 400) -> list[Statement]:
    """What accuracy is measured on."""
    seed = random.Random(1)
    return [s for s in enumerated() if s.held_out] + [give(seed, held_out=True) for _ in range(gives)]


class Writer:
    """Draws documents: one sentence, one with its follow-up, or a story of several."""

    def __init__(self, seed: int) -> None:
        self.seed = random.Random(seed)
        self.groups: dict[str, list[Statement]] = {}
        self.twins: dict[str, list[Statement]] = {}  # by task and template, those that differ in their entity only
        for statement in enumerated():
            if not statement.held_out:
                self.groups.setdefault(statement.task, []).append(statement)
                if statement.entity:
                    self.twins.setdefault(statement.task + statement.template, []).append(statement)
        self.tasks = [*self.groups, "capital", "country", "give", "give", "give"]
        self.wordings = list(self.twins)

    def statement(self) -> Statement:
        """One statement that is not held out."""
        task = self.seed.choice(self.tasks)
        return give(self.seed, held_out=False) if task == "give" else self.seed.choice(self.groups[task])

    def document(self) -> list[tuple[str, bool]]:
        """Pieces of text in order, each with whether it is an answer."""
        kind = self.seed.random()
        if kind < 0.15:
            told = [self.statement() for _ in range(self.seed.randint(2, 3))]
            pieces = [(STORY.rstrip(), False)]
            for one in told:
                pieces += [(f" {one.prompt}", False), (one.answer, True), (".", False)]
            return pieces
        one = self.statement()
        lead, follows = "", kind < 0.25  # a bare sentence mostly ends the text
        if kind > 0.8:
            lead, follows = CUE, True
        elif kind > 0.65:
            lead = f"{self.seed.choice(NAMES)} says: "
        pieces = [(lead + one.prompt, False), (one.answer, True), (".", False)]
        return [*pieces, (one.follow, False)] if follows else pieces

    def lead(self) -> str:
        """What may stand in front of a sentence."""
        return self.seed.choice(("", "", CUE, f"{self.seed.choice(NAMES)} says: "))

    def twin_pair(self) -> tuple[str, list[Statement], list[Statement]]:
        """A lead, two statements of one template, and what they are with their entities interchanged."""
        lead = self.lead()
        first, second = self.seed.sample(self.twins[self.seed.choice(self.wordings)], 2)
        return lead, [first, second], [second, first]

    def mixed_pair(self) -> tuple[str, list[Statement], list[Statement]]:
        """The same of two templates of any wording; what is held out is neither asked nor answered."""
        lead = self.lead()
        while True:
            one, other = self.seed.choices(self.wordings, k=2)
            first, second = self.seed.choice(self.twins[one]), self.seed.choice(self.twins[other])
            swapped = [
                next((s for s in self.twins[one] if s.entity == second.entity), None),
                next((s for s in self.twins[other] if s.entity == first.entity), None),
            ]
            known = [s for s in swapped if s is not None]
            if first.entity != second.entity and len(known) == 2:
                return lead, [first, second], known

    def documents(self, count: int) -> list[list[tuple[str, bool]]]:
        """`count` documents."""
        return [self.document() for _ in range(count)]
