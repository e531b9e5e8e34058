"""Writes the scopes and questions beside it from the phrases in ``phrases/``: ``python tests/data/changes/make.py``.

Always the same, from ``SEED``. What the files are, and how phrases are written down, is in README.md.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
KINDS = ("home", "job", "number", "favourite", "relationship", "plan", "price", "owner", "software", "habit")
SEED = 20
SCOPES = 10
PER_KIND = 3
"""Changes of each kind in one scope."""
TALKED_TO = 3
"""The last so many scopes are one user's talk with an assistant; the others are chats of a whole group."""
CAST = 20
SESSIONS, DAYS = 48, 240
GAP_DAYS = (3, 150)
"""From the old statement to the new one."""
FIRST_PERSON = 0.65
"""Share of changes in a group that are told by whom they are about."""
TOLD_BY_OTHERS = 0.15
"""Share of their statements that somebody else makes all the same."""
FACTS = {
    "home": "{P} lives in {v}.",
    "job": "{P} works at {v}.",
    "number": "{P}'s {item} is {v}.",
    "favourite": "{P}'s favourite {item} is {v}.",
    "relationship": "{P}'s {item} is {v}.",
    "plan": "{P}'s {item} is on {v}.",
    "price": "{Thing} costs {v}.",
    "owner": "{v} looks after {thing}.",
    "software": "{Thing} is {v}.",
    "habit": "{P} {v}.",
}
"""How a model would put a fact of a kind."""
NO_FACT = {
    "other": "{speaker} says: {text}",
    "same": "{speaker} remarks: {text}",
    "oldvalue": "{speaker} mentions in passing: {text}",
    "unrealised": "{speaker} tells of something that did not come about: {text}",
    "if": "{speaker} only supposes: {text}",
}
"""How it would put what else is said, by section."""
OF_THINGS = ("price", "software")
"""Kinds whose facts are about no person, so that anyone tells them."""
NEAR = ("other", "same", "oldvalue", "unrealised", "if")
EXTRA = ("other", "same", "oldvalue")
DISTRACTORS = (4, 8)
REPLIES = (
    "All right, thank you for telling me.",
    "Understood. Is there anything else today?",
    "I see. Shall we go on with the letter?",
    "Good to know, thanks.",
    "That sounds like a full day. Do you want a summary later?",
    "Thank you, I have that. What comes next?",
    "Fine. Tell me when you would like to continue.",
    "I hope the rest of the week is quieter.",
)

WOMEN = (
    "Ada Agnes Alma Beate Bridget Carla Celeste Dagny Dorothea Edda Elin Esther Flora Freya Gerda Greta Hanne Hilde "
    "Imke Ingrid Irma Judith Karin Lena Liv Lotte Magda Marit Mina Nadja Nell Olga Petra Ragna Renate Rosa Sigrid "
    "Tessa Ulla Vera Wilma Zita"
).split()
MEN = (
    "Abel Alfons Anton Arne Bastian Boris Cedric Conrad Dario Edgar Emil Erik Fabian Fritz Georg Gustav Hannes Henrik "
    "Igor Ivo Jannik Jens Joris Karl Kilian Lars Linus Lukas Magnus Marek Nils Olaf Otto Piet Ralf Roland Stefan Theo "
    "Udo Viktor Willem Xaver"
).split()


class Line(NamedTuple):
    """A phrase: who says it (a letter, see README.md) and whether it says itself that something changed."""

    who: str
    marked: bool
    text: str


class Value(NamedTuple):
    """What a change may be about, its questions if it has some of its own, and the values that it may take."""

    item: str
    questions: tuple[str, ...]
    options: tuple[str, ...]


class Phrases(NamedTuple):
    """One kind: its values, its questions, its lines per section."""

    values: tuple[Value, ...]
    questions: tuple[str, ...]
    lines: dict[str, tuple[Line, ...]]


class Turn(NamedTuple):
    """What is said in which session, by whom; ``key`` tells the two statements of a change from the rest."""

    session: int
    speaker: str
    text: str
    key: tuple[int, str] | None
    context: str = ""
    fact: str = ""
    keywords: tuple[str, ...] = ()


def read(kind: str) -> Phrases:
    """The phrases of a kind, from its file."""
    sections: dict[str, list[str]] = {}
    for line in (HERE / "phrases" / f"{kind}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            sections[line.strip("[]")] = current = []
        elif line:
            current.append(line)
    values = []
    for entry in sections.pop("values"):
        *head, options = entry.split(" | ")
        own = tuple(head[0].split(" / ")) if head[0].endswith("?") else ()
        values.append(Value(head[0], own, tuple(options.split("; "))))
    questions = tuple(sections.pop("question", ()))
    lines = {}
    for name, said in sections.items():
        parts = [line.split(": ", 1) for line in said]
        lines[name] = tuple(Line(who.rstrip("!"), who.endswith("!"), text) for who, text in parts)
    return Phrases(tuple(values), questions, lines)


class Decks:
    """Shuffled decks, so that every phrase of a section is used before one is used again."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._decks: dict[tuple[str, str, str], list[Line]] = {}

    def draw(self, kind: str, section: str, who: str, lines: Sequence[Line]) -> Line:
        """The next of those ``lines`` that one of ``who`` says."""
        deck = self._decks.setdefault((kind, section, who), [])
        if not deck:
            deck.extend(line for line in lines if line.who in who)
            self._chance.shuffle(deck)
        return deck.pop()


def everything() -> tuple[dict[str, list[dict[str, Any]]], list[dict[str, Any]]]:
    """The events of each scope, and all questions."""
    scopes, questions = _everything()
    return {scope.name: scope.events for scope in scopes}, questions


def _everything() -> tuple[list[Scope], list[dict[str, Any]]]:
    chance = random.Random(SEED)
    decks = Decks(chance)
    phrases = {kind: read(kind) for kind in KINDS}
    scopes: list[Scope] = []
    for number in range(SCOPES):
        scopes.append(Scope(number, chance, decks, phrases))
    return scopes, [asked for scope in scopes for asked in scope.questions]


class Scope:
    """One scope: its people, its sessions, its changes."""

    def __init__(self, number: int, chance: random.Random, decks: Decks, phrases: dict[str, Phrases]) -> None:
        self.name = f"scope-{number + 1:02}"
        self._chance, self._decks, self._phrases = chance, decks, phrases
        self._group = number < SCOPES - TALKED_TO
        women = chance.sample(WOMEN, CAST // 2)
        self._women = frozenset(women)
        self._cast = women + chance.sample(MEN, CAST // 2)
        self._starts = self._sessions(datetime(2023 + number % 3, 1, 4, tzinfo=timezone.utc))
        self._turns: list[Turn] = []
        self._said: set[str] = set()
        self._asked: list[dict[str, Any]] = []
        for kind in KINDS:
            self._changes_of(kind)
        if not self._group:
            for session in chance.sample(range(SESSIONS), SESSIONS // 2):
                self._turns.append(Turn(session, "assistant", chance.choice(REPLIES), None))
        self.events, self.questions = self._written()
        turns = {(turn.speaker, turn.text): turn for turn in self._turns}
        self.notes = [
            {"id": event["id"], "context": turn.context or f"{turn.speaker} says: {turn.text}",
             "keywords": turn.keywords, "tags": [],
             "facts": [turn.fact] if turn.fact else []}
            for event in self.events
            for turn in [turns[event["speaker"], event["content"]]]
        ]  # fmt: skip

    def _sessions(self, first: datetime) -> list[datetime]:
        days = sorted(self._chance.sample(range(DAYS), SESSIONS))
        return [first + timedelta(days=day, hours=8, minutes=self._chance.randrange(12 * 60)) for day in days]

    def _changes_of(self, kind: str) -> None:
        known, chance = self._phrases[kind], self._chance
        people = chance.sample(self._cast, len(self._cast))
        subjects, others = people[:PER_KIND], people[PER_KIND:]
        values = list(known.values)
        if kind == "owner":  # a thing, and three people who may have it
            values = [Value(thing, (), tuple(chance.sample(people, 3))) for thing in values[0].options]
        picked = chance.sample(values, PER_KIND) if len(values) > 1 else values * PER_KIND
        elsewhere = [value for value in values if value not in picked]
        for subject, value in zip(subjects, picked, strict=True):
            self._change(kind, subject, value, others, elsewhere)

    def _change(self, kind: str, subject: str, value: Value, others: list[str], elsewhere: Sequence[Value]) -> None:
        """One change with its distractors. Nobody of ``others`` has a fact of this kind; who gets one is taken out."""
        chance, number = self._chance, len(self._asked)
        old, new, miss = self._three(value)
        slots = {**self._person(subject, ""), "item": value.item, **_thing("thing", value.item)}
        slots |= {**_forms("old", old), **_forms("new", new), **_forms("miss", miss)}
        speakers = {"P": subject, "V": old, "W": new}
        when = self._when()
        own = self._group and chance.random() < FIRST_PERSON and kind not in OF_THINGS
        marked = False
        for section in ("old", "new"):
            # Now and then somebody tells the news of another, or the other way round.
            who = "PVW" if own and chance.random() > TOLD_BY_OTHERS else "*"
            marked = self._say(kind, section, who, slots, speakers, when, (number, section)).marked
        for section in self._sections():
            if kind in (*OF_THINGS, "owner"):
                thing = chance.choice(elsewhere)
                slots |= _thing("other_thing", thing.item) | _forms("other", chance.choice(thing.options))
            else:
                slots |= _forms("other", self._another(value, old, new))
            if kind == "owner":
                other = chance.choice([name for name in self._cast if name not in value.options])
            else:
                other = others.pop() if section == "other" else others[0]
            told = slots | self._person(other, "2")
            self._say(kind, section, "PQ*" if self._group else "*", told, speakers | {"Q": other}, when, None)
        asked = chance.choice(value.questions or self._phrases[kind].questions)
        before, after = (self._starts[session] for session in when)
        moment = before + (after - before) * chance.uniform(0.3, 0.95)
        self._asked.append(
            {"scope": self.name, "question": asked.format_map(slots), "as_of": moment, "kind": kind, "marked": marked}
        )

    def _three(self, value: Value) -> tuple[str, str, str]:
        (pattern, *more), chance = value.options, self._chance
        if more:
            old, new, miss = chance.sample(value.options, 3)
            return old, new, miss
        return self._filled(pattern), self._filled(pattern), self._filled(pattern)

    def _another(self, value: Value, old: str, new: str) -> str:
        if len(value.options) == 1:
            return self._filled(value.options[0])
        return self._chance.choice([option for option in value.options if option not in (old, new)])

    def _filled(self, pattern: str) -> str:
        if pattern == "%":
            return f"{self._chance.randrange(1, 29)} {self._chance.choice(['November', 'December', 'January'])}"
        digits = (str(self._chance.randrange(1, 10)) if mark == "#" else mark for mark in pattern)
        return "".join(self._chance.choice("ABCDEFGHK") if mark == "@" else mark for mark in digits)

    def _person(self, name: str, suffix: str) -> dict[str, str]:
        he, him, his = ("she", "her", "her") if name in self._women else ("he", "him", "his")
        return {"Q" if suffix else "P": name, f"he{suffix}": he, f"him{suffix}": him, f"his{suffix}": his}

    def _when(self) -> tuple[int, int]:
        """Sessions of the old and the new statement, with at least one between them."""
        low, high = (timedelta(days=days) for days in GAP_DAYS)
        while True:
            before, after = sorted(self._chance.sample(range(SESSIONS), 2))
            if after > before + 1 and low <= self._starts[after] - self._starts[before] <= high:
                return before, after

    def _sections(self) -> list[str]:
        wanted = self._chance.randint(*DISTRACTORS)
        sections = [*NEAR, *(self._chance.choice(EXTRA) for _ in range(wanted - len(NEAR)))]
        self._chance.shuffle(sections)
        return sections[:wanted]

    def _range(self, section: str, text: str, before: int, after: int) -> tuple[int, int]:
        """The first and the last session in which a phrase makes sense."""
        if section in ("old", "new"):
            return (before, before) if section == "old" else (after, after)
        if section == "unrealised":  # of the time in which the old fact still held
            return before + 1, after - 1
        return (0, after - 1) if "{new" in text else (0, SESSIONS - 1)

    def _say(
        self, kind: str, section: str, who: str, slots: dict[str, str], speakers: dict[str, str],
        when: tuple[int, int], key: tuple[int, str] | None,
    ) -> Line:  # fmt: skip
        """Add a turn with the next phrase of the section that says what was not yet said in this scope."""
        lines = self._phrases[kind].lines[section]
        while True:
            line = self._decks.draw(kind, section, who, lines)
            text = line.text.format_map(slots)
            if text not in self._said:
                break
        self._said.add(text)
        meant = {slots["P"], slots.get("Q"), slots["old"], slots["new"]}
        anyone = self._chance.choice([name for name in self._cast if name not in meant])
        speaker = speakers[line.who] if line.who != "*" else anyone if self._group else "user"
        session = self._chance.randint(*self._range(section, line.text, *when))
        fact, keywords = _fact(kind, section, line, slots)
        said = text[0].upper() + text[1:]
        context = fact or NO_FACT[section].format(speaker=speaker, text=said)
        self._turns.append(Turn(session, speaker, said, key, context, fact, keywords))
        return line

    def _written(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        chance = self._chance
        events: list[dict[str, Any]] = []
        ids: dict[tuple[int, str], str] = {}
        for session, start in enumerate(self._starts):
            turns = [turn for turn in self._turns if turn.session == session]
            chance.shuffle(turns)
            moment = start
            for turn in turns:
                name = f"{self.name}-{len(events) + 1:03}"
                if turn.key:
                    ids[turn.key] = name
                events.append(
                    {"id": name, "speaker": turn.speaker, "session": f"{self.name}-s{session + 1:02}",
                     "occurred_at": _told(moment), "content": turn.text}
                )  # fmt: skip
                moment += timedelta(minutes=chance.randint(1, 6))
        questions = [
            {"scope": asked["scope"], "question": asked["question"], "now": ids[number, "new"],
             "before": ids[number, "old"], "as_of": _told(asked["as_of"]), "kind": asked["kind"],
             "marked": asked["marked"]}
            for number, asked in enumerate(self._asked)
        ]  # fmt: skip
        return events, questions


def _fact(kind: str, section: str, line: Line, slots: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    """What a line states of somebody or something in the scope, with keywords; "" if nothing, or of a stranger."""
    value = slots.get(f"{section}s", slots[section]) if section in ("old", "new", "other") else ""
    if section == "other":
        thing = "{other_thing" in line.text or "{Other_thing" in line.text
        if not thing and "{Q}" not in line.text and line.who != "Q":
            return "", ()
        slots = slots | {"P": slots["Q"]}
        if thing:
            slots |= _thing("thing", slots["other_thing"])
        if kind == "owner":
            value = slots["Q"]
    if not value:
        return "", ()
    about = slots["thing"] if kind in (*OF_THINGS, "owner") else slots["P"]
    return FACTS[kind].format_map(slots | {"v": value}), (about, value)


def _told(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:00Z")


def _thing(slot: str, name: str) -> dict[str, str]:
    return {slot: name, slot.capitalize(): name[0].upper() + name[1:]}


def _forms(slot: str, value: str) -> dict[str, str]:
    """A value under its slot; of a verb (``cycle,cycles,cycling to work``) each form under a slot of its own."""
    first, _, rest = value.partition(" ")
    forms = first.split(",")
    if len(forms) != 3:
        return {slot: value}
    base, third, going = (f"{form} {rest}" for form in forms)
    return {slot: base, f"{slot}s": third, f"{slot}ing": going, f"{slot}ing".capitalize(): going[0].upper() + going[1:]}


def lines_of(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Rows as JSON lines."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=False) + "\n"


def recorded() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What a model would answer: a note for each event, and which fact replaces which."""
    scopes, questions = _everything()
    notes = [note for scope in scopes for note in scope.notes]
    facts = {note["id"]: note["facts"] for note in notes}
    links = [
        {"scope": asked["scope"], "newer": facts[asked["now"]][0], "older": facts[asked["before"]][0]}
        for asked in questions
    ]
    return notes, links


def main() -> None:
    """Write all files."""
    scopes, questions = everything()
    notes, links = recorded()
    (HERE / "model").mkdir(exist_ok=True)
    (HERE / "model" / "notes.jsonl").write_text("".join(lines_of(notes)), encoding="utf-8")
    (HERE / "model" / "replaces.jsonl").write_text("".join(lines_of(links)), encoding="utf-8")
    for name, events in scopes.items():
        (HERE / f"{name}.jsonl").write_text("".join(lines_of(events)), encoding="utf-8")
    (HERE / "questions.jsonl").write_text("".join(lines_of(questions)), encoding="utf-8")


if __name__ == "__main__":
    main()
