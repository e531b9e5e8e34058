"""Extracts facts from what a person states: whose they are, which attribute, of which thing, and the value.

"My wife works at Google." is a fact about the speaker's wife with the attribute ``work`` and the value "Google". Only
statements count: no questions, suppositions, plans, reports of others, quotations, code, or states of the past. The
patterns are those of the text's language (:mod:`zettel.evolve.frames`); without any there are no facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from zettel.evolve.frames import Exclusive, Frame, Language, Pattern, Sense, language_of, places
from zettel.evolve.values import Value, read_value
from zettel.model import Kind, Note, implied_role
from zettel.text.dates import find_dates
from zettel.text.extraction import is_question, sentences
from zettel.text.tokens import tokenize

MAX_CHARS = 4000
"""Longer texts are documents."""
MAX_SENTENCE = 300
"""Longer sentences are lists or badly punctuated; their clauses depend on each other."""
MAX_THING = 6
"""The most tokens of a thing."""
SOON = timedelta(hours=20)
"""A date further ahead is in the future of a statement."""
CACHED = 8192
"""Notes whose facts are cached, because jobs soon compare other notes with them."""

_WORD = re.compile(r"[^\W\d_]+")
_QUOTED = re.compile('["\u201c\u00ab\u201e][^"\u201d\u00bb\u201c]*["\u201d\u00bb]|(?<!\\w)\'[^\']{8,}\'(?!\\w)')
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_BLOCK = re.compile(r"^\s*(?:>|\||[-*+]\s|\d+[.)]\s|#).*$|^\s{4,}\S.*$", re.MULTILINE)
"""Quoted lines, tables, lists, headings and indented code."""
_LETTER = re.compile(r"^\s*(?:dear|subject:|hi \w+,\s*$|re:).*", re.IGNORECASE | re.MULTILINE | re.DOTALL)
"""A draft of a letter, to the end."""


class Owner(NamedTuple):
    """Whose fact it is: the tokens of a person's name, and the path from there: ("wife", "boss").

    Without tokens it is a thing that the conversation is about: "the rent".
    """

    person: frozenset[str]
    path: tuple[str, ...] = ()


_NOBODY = Owner(frozenset())


class Fact(NamedTuple):
    """A stated fact.

    ``thing`` are the tokens that say of what: {"rent"} of a value. ``sense`` tells a change or an end from a state.
    ``former`` is the old value in the words of the sentence, or "". ``marked``: the sentence reports a change.
    ``effective``: the time from which it is true, if that is later than the statement.
    """

    owner: Owner
    attribute: str
    thing: frozenset[str]
    value: Value
    sense: Sense
    exclusive: Exclusive
    marked: bool
    former: str
    corrects: bool
    temporary: bool
    adds: bool
    qualifiers: frozenset[str]
    effective: datetime | None
    text: str


def facts(note: Note) -> tuple[Fact, ...]:
    """Return what a note states; () for a note of an assistant, tool or document, or derived from others.

    Example: for "I live in Porto." one fact with the attribute ``home`` and the value "Porto".
    """
    if not facts_are_read(note):
        return ()
    speaker = note.speaker or ("" if note.kind is Kind.SEMANTIC else "user")
    return _facts(note.content, speaker, note.occurred_at)


def facts_are_read(note: Note) -> bool:
    """Return whether a note is the statement of a person, or a fact that a model wrote."""
    role = note.role or implied_role(note.speaker)
    if note.kind is Kind.SEMANTIC and not note.speaker:
        return True
    is_document = role is None and not note.speaker and bool(note.title)
    return note.kind is Kind.EPISODIC and role in (None, "user") and not is_document


class Denial(NamedTuple):
    """A sentence which says that something is no longer so: its words, in lower case, and its tokens."""

    text: str
    tokens: frozenset[str]
    in_first_person: bool


def denials(note: Note) -> tuple[Denial, ...]:
    """Return the sentences of a person which say that something is no longer so: "I don't live in Porto any more."."""
    return _denials(note.content) if facts_are_read(note) else ()


@lru_cache(maxsize=CACHED)
def _denials(content: str) -> tuple[Denial, ...]:
    found = []
    language, texts = _asserted(content)
    for sentence in texts:
        if language is not None and language.denies.search(sentence) and not language.unasserted.search(sentence):
            words = frozenset(_WORD.findall(sentence.lower()))
            first = not words.isdisjoint(language.first | language.mine)
            found.append(Denial(f" {sentence.lower()} ", frozenset(tokenize(sentence)), first))
    return tuple(found)


@lru_cache(maxsize=CACHED)
def _facts(content: str, speaker: str, said_at: datetime | None) -> tuple[Fact, ...]:
    found: list[Fact] = []
    language, texts = _asserted(content)
    for sentence in texts:
        assert language is not None
        found += _of_sentence(sentence, speaker, said_at, language)
    return tuple(found)


def _asserted(content: str) -> tuple[Language | None, list[str]]:
    """Return the language of a text and its sentences that are neither asked, quoted nor reported."""
    if len(content) > MAX_CHARS or content.isupper():
        return None, []
    text = own_words(content)
    if text.islower():  # "i live in porto"
        text = _WORD.sub(lambda word: word[0].title() if word[0] in places() else word[0], text)
    language = language_of(text)
    if language is None or language.quotes.search(text):
        return None, []
    kept = []
    for sentence in sentences(text):
        if len(sentence) <= MAX_SENTENCE and not is_question(sentence):
            full = expanded(sentence, language)
            if not language.reported.search(full):
                kept.append(full)
    return language, kept


def expanded(sentence: str, language: Language) -> str:
    """Return a sentence with its contractions in full: "I am" for "I'm"."""
    for contraction, words in language.contractions:
        sentence = contraction.sub(words, sentence)
    return sentence


def own_words(content: str) -> str:
    """Return a text without code, quotations, lists, tables and drafts of letters."""
    text = content.replace("\u2019", "'")
    for hidden in (_CODE, _LETTER, _BLOCK, _QUOTED):
        text = hidden.sub(" ", text)
    return text


def _of_sentence(sentence: str, speaker: str, said_at: datetime | None, language: Language) -> Iterator[Fact]:
    marked, corrects = bool(language.now.search(sentence)), bool(language.corrects.search(sentence))
    effective = _effective(sentence, said_at, language)
    subject = ""
    pieces = language.breaks.split(sentence)
    is_opened_temporarily = bool(language.temporary.search(pieces[0]))  # "This week only, the course is on Monday."
    for piece in pieces:
        clause = language.adverb.sub(" ", language.opening.sub("", piece)).strip(" .!\u2026")
        if not clause or language.unasserted.search(clause) or language.former.search(clause):
            continue
        if effective is None and language.future.search(clause):  # a plan without a date
            continue
        forms = [clause]
        if subject or speaker:  # "Moved to Braga." has no subject
            forms.append(f"{subject or language.me} {clause}")
        for form in forms:
            matched = _match(form, speaker, language)
            if matched is None:
                continue
            frame, pattern, match, owner, value, thing = matched
            groups = match.groupdict()
            subject = (groups.get("subject") or subject).strip() if frame.owner == "person" else subject
            rest = form[match.end() :] if frame.value not in ("rest", "day", "sentence") else ""
            yield Fact(
                owner, frame.attribute, thing, value, pattern.sense, frame.exclusive,
                marked or pattern.sense != "states", groups.get("former") or "", corrects,
                is_opened_temporarily or bool(language.temporary.search(clause)), bool(language.adds.search(clause)),
                _qualifiers(rest, language), effective, piece.strip(),
            )  # fmt: skip
            break


class _Match(NamedTuple):
    frame: Frame
    pattern: Pattern
    match: re.Match[str]
    owner: Owner
    value: Value
    thing: frozenset[str]


def _match(clause: str, speaker: str, language: Language) -> _Match | None:
    """Return the first frame that a clause fills completely."""
    for frame in language.frames:
        for pattern in frame.patterns:
            match = pattern.regex.match(clause)
            if match is None:
                continue
            groups = match.groupdict()
            value = read_value(frame, pattern, groups, speaker, language)
            holder = _owner(groups.get("subject") or groups.get("person") or language.me, speaker, language)
            owned = _thing(groups.get("thing"), speaker, holder, language) if frame.thing else (_NOBODY, frozenset())
            if value is None or owned is None:
                continue
            owner = holder if frame.owner == "person" else owned[0]
            if owner is not None:
                return _Match(frame, pattern, match, owner, value, owned[1])
    return None


def _owner(subject: str | None, speaker: str, language: Language) -> Owner | None:
    """Return the person that a subject names, or None for a thing or a pronoun."""
    words = (subject or "").split()
    if not words:
        return None
    low = [word.lower() for word in words]
    if len(words) == 1 and (low[0] in language.first or low[0] in language.mine):
        return Owner(_name_tokens(speaker))
    if low[0] in language.mine:
        if len(words) > 2 and words[-1][:1].isupper():  # "my son Alfie"
            return Owner(_name_tokens(words[-1]))
        return Owner(_name_tokens(speaker), _path(low[1:], language))
    if not words[0][:1].isupper() or low[0] in language.determiners or low[0] in language.common:
        return None
    name: list[str] = []
    path_words: list[str] = []
    for word in words:
        (name if word[:1].isupper() and not path_words else path_words).append(language.genitive.sub("", word))
    return Owner(_name_tokens(" ".join(name)), _path(path_words, language))


def _path(words: Iterable[str], language: Language) -> tuple[str, ...]:
    """Return the tokens of "wife's boss", without words that do not tell owners apart."""
    bare = (language.genitive.sub("", word) for word in words if word.lower() not in language.descriptions)
    return tuple(token for word in bare for token in tokenize(word) if token not in language.neutral)


def _name_tokens(name: str) -> frozenset[str]:
    return frozenset(part.strip(".,").lower() for part in name.split() if part)


def _thing(
    text: str | None, speaker: str, holder: Owner | None, language: Language
) -> tuple[Owner, frozenset[str]] | None:
    """Return whose thing a phrase names, and its tokens: "the rent of my garage", "Ann's door code".

    ``holder`` is whom "his" or "her" means: the subject of the clause.
    """
    words = (text or "").split()
    if not words:
        return None
    person: frozenset[str] = frozenset()
    kept: list[str] = []
    joining = language.qualifying | language.determiners
    for place, word in enumerate(words):
        low = word.lower()
        bare = language.genitive.sub("", word)
        if low in language.mine:
            person = person or _name_tokens(speaker)
        elif low in language.theirs:
            if holder is None or holder.path:
                return None
            person = holder.person
        elif word[:1].isupper() and bare != word:  # Ann's
            person = _name_tokens(bare)
        elif place and words[place - 1].lower() in language.owned_by and word[:1].isupper():
            person = _name_tokens(word)
        elif low in language.first or (low in language.common and low not in joining):
            return None  # a sentence, not a thing: "I think that it"
        elif low not in language.determiners and low not in language.descriptions and low not in language.qualifying:
            kept.append(bare)
    tokens = frozenset(token for word in kept for token in tokenize(word))
    tokens = tokens - language.neutral or tokens
    return (Owner(person), tokens) if tokens and len(tokens) <= MAX_THING else None


def _qualifiers(rest: str, language: Language) -> frozenset[str]:
    """Return the tokens of the phrases with a preposition after a value: {"garage"} of "for the garage"."""
    words = rest.split()
    ignored = language.calendar | language.determiners | language.qualifying
    tokens: set[str] = set()
    inside = False
    for word in words:
        low = word.lower().strip(",.")
        inside = inside or low in language.qualifying
        if inside and low not in ignored:
            tokens.update(tokenize(low))
    return frozenset(tokens) - language.neutral


def _effective(sentence: str, said_at: datetime | None, language: Language) -> datetime | None:
    """Return the start of a time in the future from which a sentence is true."""
    if said_at is None or not language.effective.search(sentence):
        return None
    starts = [time.start for time in find_dates(sentence, said_at)]
    return next((start for start in starts if start > said_at + SOON), None)
