"""Generator of the scopes and questions in this folder: ``python tests/data/changes/make.py``.

The output is determined by ``SEED`` and the files in ``phrases/``. README.md describes the files and the phrases.
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
ASSISTANT_SCOPES = 3
"""Number of last scopes in which one user talks with an assistant; the others are group chats."""
CAST = 20
SESSIONS, DAYS = 48, 240
GAP_DAYS = (3, 150)
"""Least and most days between the old and the new statement."""
FIRST_PERSON = 0.65
"""Share of changes in a group whose speaker is the person concerned."""
OTHER_SPEAKER = 0.15
"""Share of these statements that another speaker makes."""
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
"""A model's wording of a fact, by kind."""
NO_FACT = {
    "other": "{speaker} says: {text}",
    "same": "{speaker} remarks: {text}",
    "oldvalue": "{speaker} mentions in passing: {text}",
    "unrealised": "{speaker} tells of something that did not come about: {text}",
    "if": "{speaker} only supposes: {text}",
}
"""A model's context of other statements, by section."""
OF_THINGS = ("price", "software")
"""Kinds whose facts concern no person, so that anyone may state them."""
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
    """A phrase: its speaker (a letter, see README.md) and whether its wording marks a change."""

    speaker: str
    marked: bool
    text: str


class Value(NamedTuple):
    """The subject of a change, its own questions if it has any, and its possible values."""

    item: str
    questions: tuple[str, ...]
    options: tuple[str, ...]


class Phrases(NamedTuple):
    """The values, questions and lines per section of one kind."""

    values: tuple[Value, ...]
    questions: tuple[str, ...]
    lines: dict[str, tuple[Line, ...]]


class Turn(NamedTuple):
    """A turn of a session; ``key`` identifies the two statements of a change and is None for all others."""

    session: int
    speaker: str
    text: str
    key: tuple[int, str] | None
    context: str = ""
    fact: str = ""
    keywords: tuple[str, ...] = ()


def read(kind: str) -> Phrases:
    """Return the phrases of a kind from its file."""
    sections: dict[str, list[str]] = {}
    for line in (HERE / "phrases" / f"{kind}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            sections[line.strip("[]")] = current = []
        elif line:
            current.append(line)
    values = []
    for entry in sections.pop("values"):
        *fields, options = entry.split(" | ")
        own = tuple(fields[0].split(" / ")) if fields[0].endswith("?") else ()
        values.append(Value(fields[0], own, tuple(options.split("; "))))
    questions = tuple(sections.pop("question", ()))
    lines = {}
    for name, entries in sections.items():
        parts = [line.split(": ", 1) for line in entries]
        lines[name] = tuple(Line(speaker.rstrip("!"), speaker.endswith("!"), text) for speaker, text in parts)
    return Phrases(tuple(values), questions, lines)


class Decks:
    """Shuffled phrases of each section, each of which is used once before any is repeated."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._decks: dict[tuple[str, str, str], list[Line]] = {}

    def draw(self, kind: str, section: str, speakers: str, lines: Sequence[Line]) -> Line:
        """Return the next of these ``lines`` with one of the letters in ``speakers``."""
        deck = self._decks.setdefault((kind, section, speakers), [])
        if not deck:
            deck.extend(line for line in lines if line.speaker in speakers)
            self._rng.shuffle(deck)
        return deck.pop()


def generate() -> tuple[dict[str, list[dict[str, Any]]], list[dict[str, Any]]]:
    """Return the events of each scope, and all questions."""
    scopes, questions = _generate()
    return {scope.name: scope.events for scope in scopes}, questions


def _generate() -> tuple[list[Scope], list[dict[str, Any]]]:
    rng = random.Random(SEED)
    decks = Decks(rng)
    phrases = {kind: read(kind) for kind in KINDS}
    scopes: list[Scope] = []
    for number in range(SCOPES):
        scopes.append(Scope(number, rng, decks, phrases))
    return scopes, [question for scope in scopes for question in scope.questions]


class Scope:
    """The people, sessions and changes of one scope."""

    def __init__(self, number: int, rng: random.Random, decks: Decks, phrases: dict[str, Phrases]) -> None:
        self.name = f"scope-{number + 1:02}"
        self._rng, self._decks, self._phrases = rng, decks, phrases
        self._group = number < SCOPES - ASSISTANT_SCOPES
        women = rng.sample(WOMEN, CAST // 2)
        self._women = frozenset(women)
        self._cast = women + rng.sample(MEN, CAST // 2)
        self._starts = self._sessions(datetime(2023 + number % 3, 1, 4, tzinfo=timezone.utc))
        self._turns: list[Turn] = []
        self._texts: set[str] = set()
        self._questions: list[dict[str, Any]] = []
        for kind in KINDS:
            self._changes_of(kind)
        if not self._group:
            for session in rng.sample(range(SESSIONS), SESSIONS // 2):
                self._turns.append(Turn(session, "assistant", rng.choice(REPLIES), None))
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
        days = sorted(self._rng.sample(range(DAYS), SESSIONS))
        return [first + timedelta(days=day, hours=8, minutes=self._rng.randrange(12 * 60)) for day in days]

    def _changes_of(self, kind: str) -> None:
        phrases, rng = self._phrases[kind], self._rng
        people = rng.sample(self._cast, len(self._cast))
        subjects, others = people[:PER_KIND], people[PER_KIND:]
        values = list(phrases.values)
        if kind == "owner":  # a thing and its three possible owners
            values = [Value(thing, (), tuple(rng.sample(people, 3))) for thing in values[0].options]
        picked = rng.sample(values, PER_KIND) if len(values) > 1 else values * PER_KIND
        other_values = [value for value in values if value not in picked]
        for subject, value in zip(subjects, picked, strict=True):
            self._change(kind, subject, value, others, other_values)

    def _change(self, kind: str, subject: str, value: Value, others: list[str], other_values: Sequence[Value]) -> None:
        """Add one change with its distractors. ``others`` have no fact of this kind; distractors remove theirs."""
        rng, number = self._rng, len(self._questions)
        old, new, miss = self._three(value)
        slots = {**self._person(subject, ""), "item": value.item, **_thing("thing", value.item)}
        slots |= {**_forms("old", old), **_forms("new", new), **_forms("miss", miss)}
        speakers = {"P": subject, "V": old, "W": new}
        sessions = self._change_sessions()
        own_speaker = self._group and rng.random() < FIRST_PERSON and kind not in OF_THINGS
        marked = False
        for section in ("old", "new"):
            # Sometimes another person states the change.
            letters = "PVW" if own_speaker and rng.random() > OTHER_SPEAKER else "*"
            marked = self._say(kind, section, letters, slots, speakers, sessions, (number, section)).marked
        for section in self._sections():
            if kind in (*OF_THINGS, "owner"):
                thing = rng.choice(other_values)
                slots |= _thing("other_thing", thing.item) | _forms("other", rng.choice(thing.options))
            else:
                slots |= _forms("other", self._another(value, old, new))
            if kind == "owner":
                other = rng.choice([name for name in self._cast if name not in value.options])
            else:
                other = others.pop() if section == "other" else others[0]
            other_slots = slots | self._person(other, "2")
            self._say(
                kind, section, "PQ*" if self._group else "*", other_slots, speakers | {"Q": other}, sessions, None
            )
        question = rng.choice(value.questions or self._phrases[kind].questions)
        before, after = (self._starts[session] for session in sessions)
        moment = before + (after - before) * rng.uniform(0.3, 0.95)
        self._questions.append(
            {
                "scope": self.name,
                "question": question.format_map(slots),
                "as_of": moment,
                "kind": kind,
                "marked": marked,
            }
        )

    def _three(self, value: Value) -> tuple[str, str, str]:
        (pattern, *more), rng = value.options, self._rng
        if more:
            old, new, miss = rng.sample(value.options, 3)
            return old, new, miss
        return self._filled(pattern), self._filled(pattern), self._filled(pattern)

    def _another(self, value: Value, old: str, new: str) -> str:
        if len(value.options) == 1:
            return self._filled(value.options[0])
        return self._rng.choice([option for option in value.options if option not in (old, new)])

    def _filled(self, pattern: str) -> str:
        if pattern == "%":
            return f"{self._rng.randrange(1, 29)} {self._rng.choice(['November', 'December', 'January'])}"
        digits = (str(self._rng.randrange(1, 10)) if mark == "#" else mark for mark in pattern)
        return "".join(self._rng.choice("ABCDEFGHK") if mark == "@" else mark for mark in digits)

    def _person(self, name: str, suffix: str) -> dict[str, str]:
        he, him, his = ("she", "her", "her") if name in self._women else ("he", "him", "his")
        return {"Q" if suffix else "P": name, f"he{suffix}": he, f"him{suffix}": him, f"his{suffix}": his}

    def _change_sessions(self) -> tuple[int, int]:
        """Return the sessions of the old and the new statement, with at least one between them."""
        low, high = (timedelta(days=days) for days in GAP_DAYS)
        while True:
            before, after = sorted(self._rng.sample(range(SESSIONS), 2))
            if after > before + 1 and low <= self._starts[after] - self._starts[before] <= high:
                return before, after

    def _sections(self) -> list[str]:
        count = self._rng.randint(*DISTRACTORS)
        sections = [*NEAR, *(self._rng.choice(EXTRA) for _ in range(count - len(NEAR)))]
        self._rng.shuffle(sections)
        return sections[:count]

    def _range(self, section: str, text: str, before: int, after: int) -> tuple[int, int]:
        """Return the first and the last session in which a phrase makes sense."""
        if section in ("old", "new"):
            return (before, before) if section == "old" else (after, after)
        if section == "unrealised":  # while the old fact is true
            return before + 1, after - 1
        return (0, after - 1) if "{new" in text else (0, SESSIONS - 1)

    def _say(
        self, kind: str, section: str, letters: str, slots: dict[str, str], speakers: dict[str, str],
        sessions: tuple[int, int], key: tuple[int, str] | None,
    ) -> Line:  # fmt: skip
        """Add a turn with the next phrase of the section whose text is new in this scope."""
        lines = self._phrases[kind].lines[section]
        while True:
            line = self._decks.draw(kind, section, letters, lines)
            text = line.text.format_map(slots)
            if text not in self._texts:
                break
        self._texts.add(text)
        named = {slots["P"], slots.get("Q"), slots["old"], slots["new"]}
        anyone = self._rng.choice([name for name in self._cast if name not in named])
        speaker = speakers[line.speaker] if line.speaker != "*" else anyone if self._group else "user"
        session = self._rng.randint(*self._range(section, line.text, *sessions))
        fact, keywords = _fact(kind, section, line, slots)
        sentence = text[0].upper() + text[1:]
        context = fact or NO_FACT[section].format(speaker=speaker, text=sentence)
        self._turns.append(Turn(session, speaker, sentence, key, context, fact, keywords))
        return line

    def _written(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        rng = self._rng
        events: list[dict[str, Any]] = []
        ids: dict[tuple[int, str], str] = {}
        for session, start in enumerate(self._starts):
            turns = [turn for turn in self._turns if turn.session == session]
            rng.shuffle(turns)
            moment = start
            for turn in turns:
                name = f"{self.name}-{len(events) + 1:03}"
                if turn.key:
                    ids[turn.key] = name
                events.append(
                    {"id": name, "speaker": turn.speaker, "session": f"{self.name}-s{session + 1:02}",
                     "occurred_at": _timestamp(moment), "content": turn.text}
                )  # fmt: skip
                moment += timedelta(minutes=rng.randint(1, 6))
        questions = [
            {"scope": question["scope"], "question": question["question"], "now": ids[number, "new"],
             "before": ids[number, "old"], "as_of": _timestamp(question["as_of"]), "kind": question["kind"],
             "marked": question["marked"]}
            for number, question in enumerate(self._questions)
        ]  # fmt: skip
        return events, questions


def _fact(kind: str, section: str, line: Line, slots: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the fact of a line with its keywords, or "" if it states none about the scope."""
    value = slots.get(f"{section}s", slots[section]) if section in ("old", "new", "other") else ""
    if section == "other":
        thing = "{other_thing" in line.text or "{Other_thing" in line.text
        if not thing and "{Q}" not in line.text and line.speaker != "Q":
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


def _timestamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:00Z")


def _thing(slot: str, name: str) -> dict[str, str]:
    return {slot: name, slot.capitalize(): name[0].upper() + name[1:]}


def _forms(slot: str, value: str) -> dict[str, str]:
    """Return slots of a value; each form of a verb (``cycle,cycles,cycling to work``) has its own slot."""
    first, _, rest = value.partition(" ")
    forms = first.split(",")
    if len(forms) != 3:
        return {slot: value}
    base, third, participle = (f"{form} {rest}" for form in forms)
    return {
        slot: base,
        f"{slot}s": third,
        f"{slot}ing": participle,
        f"{slot}ing".capitalize(): participle[0].upper() + participle[1:],
    }


def lines_of(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Return rows as JSON lines."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=False) + "\n"


def recorded() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return recorded answers of a model: a note for each event, and the facts that replace others."""
    scopes, questions = _generate()
    notes = [note for scope in scopes for note in scope.notes]
    facts = {note["id"]: note["facts"] for note in notes}
    links = [
        {"scope": question["scope"], "newer": facts[question["now"]][0], "older": facts[question["before"]][0]}
        for question in questions
    ]
    return notes, links


def main() -> None:
    """Write all files."""
    scopes, questions = generate()
    notes, links = recorded()
    (HERE / "model").mkdir(exist_ok=True)
    (HERE / "model" / "notes.jsonl").write_text("".join(lines_of(notes)), encoding="utf-8")
    (HERE / "model" / "replaces.jsonl").write_text("".join(lines_of(links)), encoding="utf-8")
    for name, events in scopes.items():
        (HERE / f"{name}.jsonl").write_text("".join(lines_of(events)), encoding="utf-8")
    (HERE / "questions.jsonl").write_text("".join(lines_of(questions)), encoding="utf-8")


if __name__ == "__main__":
    main()
