"""Splits the sentences of a user's message into clauses with their subjects: I, my wife, my sister's husband."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from zettel.text.statements import ParsedSentence, parse_sentences
from zettel.text.tokens import token_of

Owner = tuple[str, ...]
"""A subject as tokens: () for I and we, ("wife",), ("sister", "husband")."""
UNKNOWN: Owner = ("?",)
"""A person named only by a pronoun, without a subject in the sentence before."""
_PERSONS = frozenset(
    map(
        token_of,
        "wife husband partner spouse ex boyfriend girlfriend fiance fiancée fiancé mother mum mom father dad parents"
        " stepfather stepmother sister sisters brother brothers sibling siblings twin cousin cousins uncle aunt nephew"
        " niece son sons daughter daughters kid kids child children grandmother grandfather grandma grandpa"
        " grandparents grandson granddaughter friend friends neighbour neighbours neighbor neighbors landlord landlady"
        " boss manager supervisor colleague colleagues coworker coauthor flatmate roommate housemate tutor teacher"
        " coach doctor dentist therapist vet lawyer accountant hairdresser midwife client clients".split(),
    )
)
_QUOTED = re.compile('["\u201c\u00ab][^"\u201c\u201d\u00ab\u00bb]*["\u201d\u00bb]')
_GENITIVE = re.compile(r"(?:'s|(?<=s)')$")
_ADJECTIVES = "best|old|oldest|older|elder|eldest|young|younger|youngest|little|big|new|former|late|other"
_NOUN = r"[\w-]{1,64}"  # bounded, because a search may begin again at every hyphen
_POSSESSED = rf"(?:my|our) (?:{_NOUN}(?:'s|s') )*(?:(?:{_ADJECTIVES}) )?{_NOUN}"
_FIRST_POSSESSED = re.compile(rf"\b{_POSSESSED}", re.IGNORECASE)
_OF = re.compile(rf"(?<!\w)(?<!\w-)(?:the )?({_NOUN}) of ({_POSSESSED})\b", re.IGNORECASE)
_ATTRIBUTE = re.compile(rf"({_POSSESSED})(?:'s|(?<=s)')(?: name\b|(?= (?:number|code|price|date)\b))", re.IGNORECASE)
_SUBJECT = re.compile(
    r"\b(?:I|[Ww]e)\b"
    r"|(?:^\W*(?:(?:and|but|so|well|yes|no|oh|also|actually|now|then)\b,? )*|[,;:] (?:(?:and|but|while) )?"
    rf"|\b(?:and|but|while|because|that) )(?P<third>{_POSSESSED}|(?:he|she|they)\b)",
    re.IGNORECASE,
)


class Clause(NamedTuple):
    """A clause: its sentence, its subject, the text after the subject, and its whole text."""

    sentence: ParsedSentence
    owner: Owner
    rest: str
    text: str


def owner_of(phrase: str) -> Owner:
    """Return the owner that a phrase such as "my sister's husband" names."""
    return tuple(token_of(_GENITIVE.sub("", word.lower())) for word in phrase.split()[1:])


def find_owner(text: str) -> Owner | None:
    """Return the first owner after "my" or "our" in ``text``; None without one."""
    match = _FIRST_POSSESSED.search(text)
    return owner_of(match.group()) if match else None


def persons(owner: Owner) -> Owner:
    """Return the parts of a subject that are known to be persons other than the user."""
    return tuple(part for part in owner if part in _PERSONS or part.rpartition("-")[2] in _PERSONS)


def normalized(text: str) -> str:
    """Return ``text`` with one wording of possession.

    "the boss of my wife" becomes "my wife's boss", "my boss's name" "my boss", and "my seat's number" "my seat number".
    """
    return _ATTRIBUTE.sub(r"\1", _OF.sub(r"\2's \1", text))


@lru_cache(maxsize=4096)
def parse_clauses(content: str) -> tuple[tuple[ParsedSentence, tuple[Clause, ...]], ...]:
    """Return the sentences of ``content`` without quotations, each with its clauses.

    A pronoun at the start of a sentence means the first subject of the sentence before.
    """
    result = []
    last = UNKNOWN
    for sentence in parse_sentences(normalized(_QUOTED.sub(" ", content))):
        matches = list(_SUBJECT.finditer(sentence.text))
        ends = [*(match.start() for match in matches), len(sentence.text)][1:]
        clauses = []
        begin = 0
        for match, end in zip(matches, ends, strict=True):
            third = match["third"]
            owner: Owner = () if third is None else owner_of(third)
            if third is not None and " " not in third:
                owner = last if match is matches[0] else UNKNOWN
            clauses.append(Clause(sentence, owner, sentence.text[match.end() : end], sentence.text[begin:end]))
            begin = end
        last = clauses[0].owner if clauses and persons(clauses[0].owner) else UNKNOWN
        result.append((sentence, tuple(clauses)))
    return tuple(result)
