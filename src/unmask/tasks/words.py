"""Word problems in plain English: a person, things, a few events, sometimes a number that does not matter.

Every problem is a chain of small sums. The question is drawn from a phrase book with several ways to say each thing; the
solution has one way to say each, so that a model that reveals many tokens at once can agree with itself.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from unmask.tasks.problem import Problem

SHE = ("Mia", "Ana", "Eva", "Lily", "Nora", "Zoe", "Ruth", "Iris", "Clara", "Maya")
HE = ("Tom", "Ben", "Sam", "Leo", "Max", "Omar", "Finn", "Jack", "Hugo", "Paul")
THINGS = (
    "apples", "pears", "plums", "lemons", "eggs", "cookies", "coins", "stamps", "cards", "books", "pens", "shells", "stones",
    "beads", "marbles", "stickers", "buttons", "candles", "ribbons", "flowers", "tickets", "balloons", "keys", "nuts",
)  # fmt: skip
HOLDERS = ("boxes", "bags", "jars", "baskets", "bowls")


@dataclass(frozen=True)
class Level:
    """How hard."""

    steps: tuple[int, int]
    """The least and the most sums."""
    largest: int
    """No number of the chain is larger."""
    change: int
    """No single event adds or takes more."""
    distractors: float
    """The chance of a sentence that does not matter."""


LEVELS = {
    "easy": Level((2, 2), 30, 9, 0.1),
    "medium": Level((2, 3), 50, 9, 0.2),
    "hard": Level((3, 5), 999, 200, 0.5),
}


@dataclass
class Story:
    """A story while it is told."""

    rng: random.Random
    level: Level
    name: str
    friend: str
    pronoun: str
    thing: str
    total: int = 0
    told: list[str] = field(default_factory=list)
    worked: list[str] = field(default_factory=list)
    long: list[str] = field(default_factory=list)
    terse: list[str] = field(default_factory=list)
    key: list[str] = field(default_factory=list)

    def say(self, *ways: str) -> str:
        """One of several ways to say it."""
        return self.rng.choice(ways)

    def tell(self, *ways: str) -> None:
        """What happens, in one of several ways."""
        self.told.append(self.say(*ways))
        self.long.append(self.told[-1])

    def work(self, line: str) -> None:
        """A line of the solution; the long one says first what happened."""
        self.worked.append(line)
        if self.long and self.long[-1] == self.told[-1]:
            line = f"{self.long.pop()} {line}"
        self.long.append(line)

    def sum(self, left: int, sign: str, right: int) -> str:
        """A sum with its result, which is noted as a step."""
        result = {"+": left + right, "-": left - right, "*": left * right, "/": left // right}[sign]
        text = f"{left} {sign} {right} = {result}"
        self.terse.append(text)
        self.key.append(text)
        return text


def make(rng: random.Random, level: Level) -> tuple[str, Problem] | None:
    """A word problem; its key is the chain of sums with the person and the things."""
    girl = rng.random() < 0.5
    name = rng.choice(SHE if girl else HE)
    friend = rng.choice([other for other in SHE + HE if other != name])
    story = Story(rng, level, name, friend, "she" if girl else "he", rng.choice(THINGS))
    steps = rng.randint(*level.steps)
    _begin(story, steps)
    ending = rng.choice(ENDINGS) if steps > len(story.terse) + 1 and rng.random() < 0.35 else None
    needed = steps - (0 if ending is None else 2 if ending is _together else 1)
    while len(story.terse) < needed:
        rng.choice(EVENTS)(story)
    if rng.random() < level.distractors:
        story.told.insert(rng.randint(1, len(story.told)), _distractor(story))
    question = _now(story) if ending is None else ending(story)
    if question is None or not 0 < story.total <= level.largest or len(story.terse) != steps:
        return None
    story.work(f"So the answer is {story.total}.")
    text = " ".join([*story.told, question])
    return f"{name} {story.thing} {story.key}", Problem(
        text, str(story.total), manner=name, long=tuple(story.long), worked=tuple(story.worked), terse=tuple(story.terse)
    )


def _begin(story: Story, steps: int) -> None:
    rng, level = story.rng, story.level
    if steps > 1 and rng.random() < 0.25:
        groups = rng.randint(2, 6)
        each = rng.randint(2, max(2, min(9, level.largest // groups)))
        holder = rng.choice(HOLDERS)
        story.tell(
            f"{story.name} has {groups} {holder} with {each} {story.thing} in each.",
            f"{story.name} fills {groups} {holder} with {each} {story.thing} each.",
        )
        done = story.sum(groups, "*", each)
        story.total = groups * each
        story.work(f"First {story.pronoun} has {done} {story.thing}.")
        return
    story.total = rng.randint(2, max(2, level.largest // 2))
    story.tell(
        f"{story.name} has {story.total} {story.thing}.",
        f"{story.name} starts with {story.total} {story.thing}.",
        f"There are {story.total} {story.thing} in the house of {story.name}.",
    )
    story.work(f"First {story.pronoun} has {story.total} {story.thing}.")


def _gain(story: Story) -> None:
    number = story.rng.randint(2, story.level.change)
    if story.total + number > story.level.largest:
        return
    p, thing = story.pronoun, story.thing
    story.tell(
        f"Then {p} buys {number} more {thing}.",
        f"Then {p} finds {number} {thing}.",
        f"{story.friend} gives {p_object(p)} {number} more {thing}.",
        f"Later {p} gets {number} {thing} from {story.friend}.",
    )
    done = story.sum(story.total, "+", number)
    story.total += number
    story.work(f"Then {p} has {done} {thing}.")


def _loss(story: Story) -> None:
    number = story.rng.randint(2, story.level.change)
    if story.total - number < 1:
        return
    p, thing = story.pronoun, story.thing
    story.tell(
        f"Then {p} gives {number} {thing} to {story.friend}.",
        f"Then {p} loses {number} {thing}.",
        f"{story.friend} takes {number} of the {thing}.",
        f"Later {p} sells {number} {thing}.",
    )
    done = story.sum(story.total, "-", number)
    story.total -= number
    story.work(f"Then {p} has {done} {thing}.")


def _grow(story: Story) -> None:
    times = story.rng.choice((2, 2, 3))
    if story.total * times > story.level.largest or story.total > 20:
        return
    word = "twice" if times == 2 else "three times"
    story.tell(
        f"After a week {story.pronoun} has {word} as many {story.thing}.",
        f"Then {story.pronoun} wins until there are {word} as many.",
    )
    done = story.sum(story.total, "*", times)
    story.total *= times
    story.work(f"Then {story.pronoun} has {done} {story.thing}.")


EVENTS: Sequence[Callable[[Story], None]] = (_gain, _gain, _loss, _loss, _grow)


def _now(story: Story) -> str:
    p, thing = story.pronoun, story.thing
    return story.say(
        f"How many {thing} does {story.name} have now?",
        f"How many {thing} does {p} have in the end?",
        f"How many {thing} are there at the end?",
    )


def _together(story: Story) -> str | None:
    number = story.rng.randint(2, story.level.change)
    more = story.rng.random() < 0.5
    theirs = story.total + number if more else story.total - number
    if theirs < 1 or story.total + theirs > story.level.largest:
        return None
    story.tell(f"{story.friend} has {number} {'more' if more else 'fewer'} {story.thing} than {story.name} has now.")
    done = story.sum(story.total, "+" if more else "-", number)
    story.work(f"Then {story.friend} has {done} {story.thing}.")
    both = story.sum(story.total, "+", theirs)
    story.work(f"Both have {both} {story.thing}.")
    story.total += theirs
    return story.say(f"How many {story.thing} do they have together?", f"How many {story.thing} do both have in all?")


def _shared(story: Story) -> str | None:
    fits = [number for number in (2, 3, 4, 5, 6) if story.total % number == 0 and story.total > number]
    if not fits:
        return None
    friends = story.rng.choice(fits)
    story.tell(
        f"At last {story.pronoun} shares all {story.thing} equally among {friends} friends.",
        f"{story.name} then puts them into {friends} equal piles.",
    )
    pile = "pile" in story.told[-1]
    done = story.sum(story.total, "/", friends)
    story.work(f"Each part is {done} {story.thing}.")
    story.total //= friends
    return f"How many {story.thing} are in each pile?" if pile else f"How many {story.thing} does each friend get?"


ENDINGS: Sequence[Callable[[Story], str | None]] = (_together, _shared)


def _distractor(story: Story) -> str:
    other = story.rng.choice([thing for thing in THINGS if thing != story.thing])
    number = story.rng.randint(2, 20)
    return story.say(
        f"{story.friend} has {number} {other}.",
        f"{story.name} is {number} years old.",
        f"The walk home takes {number} minutes.",
        f"There are also {number} {other} in the room.",
    )


def p_object(pronoun: str) -> str:
    """She becomes her, he becomes him."""
    return {"she": "her", "he": "him"}[pronoun]
