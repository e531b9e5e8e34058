"""Extracts facts from what a person states: whose they are, which attribute, of which thing, and the value.

"My wife works at Google." is a fact about the speaker's wife with the attribute ``work`` and the value "Google". Only
statements count: no questions, suppositions, plans, reports of others, quotations, code, or states of the past. The
patterns are those of the text's language (:mod:`zettel.text.frames`); without any there are no facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from zettel.model import Kind, Note, implied_role
from zettel.text.asserted import asserted
from zettel.text.dates import placed_dates
from zettel.text.frames import Exclusive, Frame, Language, Pattern, Sense
from zettel.text.owners import NOBODY, Owner, name_tokens, owner_of, thing_of
from zettel.text.tokens import tokenize
from zettel.text.values import Value, day_end, liking, read_value

MAX_APPOSITION = 5
"""The most spaces in the value of a thing named just before: "I have a new boss, Ivan."."""
SOON = timedelta(hours=20)
"""A date further ahead is in the future of a statement."""
CACHED = 8192
"""Notes whose facts are cached, because jobs soon compare other notes with them."""
ANY = "any"
"""The attribute of an end that names only a value: "I've cancelled Netflix."."""
HAS = "has"
"""The attribute of what somebody has, uses or does, which only such an end concerns: "I watch Netflix a lot."."""

_WORD = re.compile(r"[^\W\d_]+")
_NAME = re.compile(r"([A-Z\u00c0-\u00de][\w'-]*)(?:\s+([a-z]+)|$)")
"""A name at the beginning of a clause, and the word after it."""


class Fact(NamedTuple):
    """A stated fact.

    ``thing`` are the tokens that say of what: {"rent"} of a value. ``sense``: state, change or end.
    ``marked``: the sentence reports a change; ``corrects``: it corrects an error; ``adds``: the value is a further one.
    ``qualifiers`` are tokens after the value: {"garage"} of "for the garage". ``effective``: the time from which it is
    true, if that is later than the statement. ``expires``: the end of the day that the value names.
    """

    owner: Owner
    attribute: str
    thing: frozenset[str]
    value: Value
    sense: Sense
    exclusive: Exclusive
    marked: bool
    corrects: bool
    temporary: bool
    adds: bool
    qualifiers: frozenset[str]
    effective: datetime | None
    expires: datetime | None
    text: str


def facts(note: Note) -> tuple[Fact, ...]:
    """Return what a note states; () for a note of an assistant, tool or document, or derived from others.

    Example: for "I live in Porto." one fact with the attribute ``home`` and the value "Porto".
    """
    return _read(note).facts


def belongings(note: Note) -> tuple[Fact, ...]:
    """Return what a note states or presupposes, also in questions, that its speaker has, uses or does.

    Example: for "How do I insure my Corsa?" one fact with the attribute ``has`` and the value "Corsa".
    """
    return _read(note).belongings


def endings(note: Note) -> tuple[Fact, ...]:
    """Return what a note says that it ended, by name only, besides its facts.

    Example: for "We switched from Slack to Teams." one fact with the attribute ``any`` and the value "Slack".
    """
    return _read(note).endings


def states_facts(note: Note) -> bool:
    """Return whether a note states a fact, or the end of one."""
    return bool(facts(note) or endings(note))


def states_fact(sentence: str, speaker: str) -> bool:
    """Return whether a sentence of a person states a fact."""
    return bool(_read_text(sentence, speaker, None).facts)


def facts_are_read(note: Note) -> bool:
    """Return whether a note is the statement of a person, or a fact that a model wrote."""
    if note.kind is Kind.SEMANTIC and not note.speaker:
        return True
    role = note.role or implied_role(note.speaker)
    is_document = role is None and not note.speaker and bool(note.title)
    return note.kind is Kind.EPISODIC and role in (None, "user") and not is_document


class _Reading(NamedTuple):
    facts: tuple[Fact, ...] = ()
    belongings: tuple[Fact, ...] = ()
    endings: tuple[Fact, ...] = ()


def _read(note: Note) -> _Reading:
    if not facts_are_read(note):
        return _Reading()
    return _read_text(note.content, note.speaker or note.role or "", note.occurred_at)


@lru_cache(maxsize=CACHED)
def _read_text(content: str, speaker: str, stated_at: datetime | None) -> _Reading:
    language, words, texts = asserted(content)
    if language is None:
        return _Reading()
    read = [_Sentence(text, speaker, stated_at, language) for text in texts]
    stated = tuple(fact for sentence in read for fact in sentence.facts())
    belongings = [fact for sentence in read for fact in sentence.belongings]
    endings = tuple(fact for sentence in read for fact in sentence.endings)
    return _Reading(stated, (*belongings, *_owned(words, speaker, language)), endings)


def _owned(words: str, speaker: str, language: Language) -> Iterator[Fact]:
    """Yield what a text, also a question, presupposes that the speaker has: "my dentist Dr. Okafor"."""
    for phrase in language.owned.findall(words):
        value = read_value("phrase", phrase, HAS, speaker, language)
        if value is not None:
            yield Fact(
                owner=Owner(name_tokens(speaker)), attribute=HAS, thing=frozenset(), value=value, sense="states",
                exclusive="never", marked=False, corrects=False, temporary=False, adds=False, qualifiers=frozenset(),
                effective=None, expires=None, text=phrase,
            )  # fmt: skip


class _Match(NamedTuple):
    frame: Frame
    pattern: Pattern
    groups: dict[str, str | None]
    owner: Owner
    value: Value
    thing: frozenset[str]
    rest: str


class _Sentence:
    """Reads the clauses of a sentence in order, because they share subjects, topics and marks of a change."""

    def __init__(self, text: str, speaker: str, stated_at: datetime | None, language: Language) -> None:
        self._text = text
        self._speaker = speaker
        self._stated_at = stated_at
        self._language = language
        self._is_marked = False
        self._subject = ""
        self._topic = ""
        self._is_temporary = False
        self._is_first = True
        self._break = ""  # what follows the clause: "while"
        self._is_introduced = False  # whether the last clause named the topic only
        self._candidates_of: tuple[str, dict[str, list[tuple[Frame, Pattern]]]] = ("", {})  # a text; by attribute
        self.belongings: list[Fact] = []
        self.endings: list[Fact] = []

    def facts(self) -> Iterator[Fact]:
        language = self._language
        pieces = language.breaks.split(self._text)
        for piece, mark in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
            self._break = mark
            yield from self._of_clause(piece)
            self._is_first &= not piece.strip()
            self._is_introduced &= mark in (":", ",", "(")

    def _of_clause(self, piece: str) -> Iterator[Fact]:
        language = self._language
        lead = language.opening.match(piece)
        opening = lead.group() if lead else ""
        clause = language.adverb.sub("", piece[len(opening) :].strip(" .!,\u2026")).strip()
        if not clause:
            self._read_other(piece)
            return
        positive = self._without_negation(clause)
        self._read_more(clause, piece, opening)
        matched = self._match(positive or clause, positive is not None)
        if matched is None:
            self._read_other(piece)
            named = _NAME.match(clause)
            if named and (named[2] is None or named[2] in language.after_name):  # "Ann has left, …"
                self._subject = self._subject or named[1]
            return
        if language.unasserted.search(clause):
            return
        self._remember(matched)
        if matched.pattern.sense == "topics" or language.former.search(clause):
            return
        fact = self._fact(matched, piece.strip(), opening)
        if positive is not None:
            yield fact._replace(sense="ends", marked=True)
        elif fact.effective or not language.future.search(clause):  # else a plan without a date
            yield fact

    def _read_more(self, clause: str, piece: str, opening: str) -> None:
        """Read what the speaker has, and what ended, beside the fact of a clause."""
        language = self._language
        if matched := self._match(clause, False, HAS):
            self.belongings.append(self._fact(matched, piece.strip(), opening))
        matched = self._match(clause, False, ANY)
        if matched is None or not _WORD.search(matched.value.text):
            return
        doubtful = (language.unasserted, language.former, language.future, language.today)
        if any(expression.search(piece) for expression in doubtful):
            return
        first = matched.value.text.split()[0].lower()
        fact = self._fact(matched, piece.strip(), opening)
        if not fact.qualifiers and first not in language.determiners | language.of:  # "a guitar", "for my mum"
            self.endings.append(fact)

    def _remember(self, matched: _Match) -> None:
        """Keep the subject and topic of a clause for the next ones."""
        subject = matched.groups.get("subject") or ""
        if matched.frame.owner == "person":
            self._subject = "" if subject.lower() in self._language.mine else subject or self._subject
        self._topic = matched.groups.get("thing") or self._topic
        self._is_introduced = matched.pattern.sense == "topics"
        if self._is_introduced:
            self._is_marked = True
            if subject.lower() in self._language.first:  # "I have a new boss, Ivan."
                self._topic = f"{self._language.my} {self._topic}"
            elif subject and subject.lower() not in self._language.common:
                self._topic = f"{subject}{self._language.possessive} {self._topic}"

    def _read_other(self, piece: str) -> None:
        """Read a clause without a fact: "This week only, the course is on Monday."."""
        language = self._language
        self._is_introduced = False
        if piece.strip().count(" ") < MAX_APPOSITION:
            self._is_temporary |= bool(language.temporary.search(piece) or language.today.search(piece))

    def _without_negation(self, clause: str) -> str | None:
        """Return "Ann lives in Porto" for "Ann does not live in Porto any more"; None for other clauses."""
        for negation, words in self._language.negations:
            if negation.search(clause):
                return negation.sub(words, clause)
        return None

    def _match(self, clause: str, is_negated: bool, attribute: str = "") -> _Match | None:
        """Match a clause; else with the subject or topic of earlier clauses in place of a pronoun or of nothing.

        Without an attribute, the frames of belongings and endings are left out.
        """
        language = self._language
        word, _, rest = clause.partition(" ")
        low = word.lower()
        forms = [clause]
        if low in language.pronouns and self._subject:
            forms.insert(0, f"{self._subject} {rest}")
        elif low in language.it and self._topic:
            forms.insert(0, f"{self._topic} {rest}")
        elif self._is_introduced and clause.count(" ") < MAX_APPOSITION:
            forms.append(f"{self._topic} {language.copula} {clause}")
        is_bare = low not in language.starting
        if is_bare and self._subject:
            forms.append(f"{self._subject} {clause}")
        candidates = self._candidates(" ".join(forms) if len(forms) > 1 else clause, attribute)
        if is_negated:
            candidates = [(frame, pattern) for frame, pattern in candidates if pattern.sense == "states"]
        if not candidates:
            return None
        matched = next((match for form in forms if (match := self._first(form, candidates)) is not None), None)
        if matched is None and is_bare and self._is_first and self._speaker and not self._subject:
            # "Moved to Braga.", but no states: "Take care!"
            changes = [each for each in candidates if is_negated or each[1].sense != "states"]
            matched = self._first(f"{language.me} {clause}", changes)
        return matched

    def _candidates(self, text: str, attribute: str) -> list[tuple[Frame, Pattern]]:
        """Return the patterns that may match; a clause is read for facts, belongings and endings in turn."""
        if self._candidates_of[0] != text:
            by_attribute: dict[str, list[tuple[Frame, Pattern]]] = {"": [], HAS: [], ANY: []}
            for frame, pattern in self._language.candidates(text):
                by_attribute[frame.attribute if frame.attribute in (HAS, ANY) else ""].append((frame, pattern))
            self._candidates_of = text, by_attribute
        return self._candidates_of[1][attribute]

    def _first(self, clause: str, candidates: Iterable[tuple[Frame, Pattern]]) -> _Match | None:
        """Return the first pattern that a clause fills, or else a topic."""
        topic: _Match | None = None
        for frame, pattern in candidates:
            match = pattern.regex.match(clause)
            found = self._filled(frame, pattern, match) if match else None
            if found is not None and pattern.sense != "topics":
                return found
            topic = topic or found
        return topic

    def _filled(self, frame: Frame, pattern: Pattern, match: re.Match[str]) -> _Match | None:
        """Return the fact in a match; None if a part is not what the pattern requires."""
        language, speaker = self._language, self._speaker
        groups = match.groupdict()
        subject = groups.get("subject") or ""
        if subject.lower() in language.theirs:
            subject = self._subject  # "Ann moved, her new boss is Ivan."
        named = _NAME.match(match.string)
        antecedent = subject or self._subject or (named[1] if named else "")
        is_other = antecedent and antecedent.lower() not in language.first
        other = owner_of(antecedent, speaker, language) if is_other else None
        if subject and self._is_plain(match):
            return None
        holder = owner_of(subject or language.me, speaker, language)
        owned = thing_of(groups["thing"], speaker, other, language) if "thing" in groups else (NOBODY, frozenset())
        if owned is None or (frame.owner == "thing" and (groups.get("thing") or "").lower() in language.weekdays):
            return None
        owner = holder if frame.owner == "person" or (subject and not owned[0].person) else owned[0]
        kind = next((name for name in groups if groups[name] and name not in ("subject", "thing")), "")
        text = groups.get(kind) or ""
        value: Value | None = Value("", frozenset())
        if pattern.positive is not None:
            value = liking(pattern.positive)
        elif pattern.sense != "topics":
            value = read_value(kind, text, frame.attribute, speaker, language)
        if owner is None or value is None:
            return None
        end = match.start("day") + day_end(text, language) if kind == "day" else match.end()
        return _Match(frame, pattern, groups, owner, value, owned[1], match.string[end:])

    def _is_plain(self, match: re.Match[str]) -> bool:
        """Return whether the subject cannot be a person, because of the verb: "Sounds like rain"."""
        language = self._language
        subject, verb = match["subject"].lower().split(), match.string[match.end("subject") :].split(maxsplit=1)
        return subject[0] not in language.first | language.mine and verb[:1] != [] and verb[0] in language.plain_verbs

    def _fact(self, matched: _Match, piece: str, opening: str) -> Fact:
        language = self._language
        frame, pattern, groups, owner, value, thing, rest = matched
        is_day = groups.get("day") is not None
        days = placed_dates(in_english(value.text, language), self._stated_at, direction=1) if is_day else []
        around = " ".join((opening, value.text if is_day else "", rest, self._break))
        is_temporary = self._is_temporary or bool(language.temporary.search(around))
        return Fact(
            owner=owner,
            attribute=frame.attribute,
            thing=thing,
            value=value,
            sense=pattern.sense,
            exclusive=frame.exclusive,
            marked=self._is_marked or pattern.sense != "states" or bool(language.now.search(self._text)),
            corrects=bool(language.corrects.search(self._text)),
            temporary=is_temporary or (pattern.sense == "states" and bool(language.today.search(piece))),
            adds=bool(language.adds.search(piece)),
            qualifiers=frozenset() if thing and frame.owner == "person" else _qualifiers(rest, language),
            effective=self._effective(f"{opening}{rest}" if is_day else self._text),
            expires=days[0][1].end if days else None,
            text=piece,
        )

    def _effective(self, text: str) -> datetime | None:
        """Return the start of a time in the future from which a statement is true: "from January"."""
        text = in_english(text, self._language)
        if self._stated_at is None:
            return None
        direction = 1 if self._language.future.search(text) else None
        for place, time in placed_dates(text, self._stated_at, direction=direction):
            if time.start > self._stated_at + SOON and self._language.effective.search(f"{text[:place]}|{time.text}"):
                return time.start
        return None


def in_english(text: str, language: Language) -> str:
    """Return a text with English names of months, so that its dates are found."""

    def english(match: re.Match[str]) -> str:
        name = language.english_months[match["month"].lower()]
        if name == match["month"].lower():
            return match.group()
        return f"{match['day'].replace('.', '')}{name}" if match["day"] else f"in {name}"

    return language.month.sub(english, text)


def _qualifiers(rest: str, language: Language) -> frozenset[str]:
    """Return the tokens of the phrases with a preposition after a value: {"garage"} of "for the garage"."""
    ignored = language.determiners | language.of | language.descriptions | language.first
    tokens: set[str] = set()
    inside = False
    for word in language.contrast.sub("", rest).split():
        low = word.lower().strip(",.")
        inside = inside or low in language.qualifying
        is_date = low in language.months or (low in language.weekdays and low not in language.recurring)
        if inside and not is_date and low not in ignored:
            tokens.update(tokenize(low))
    return frozenset(tokens) - language.neutral
