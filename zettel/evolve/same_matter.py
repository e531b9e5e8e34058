"""Decides whether two facts may concern the same matter, so that a model should compare them."""

from __future__ import annotations

from collections.abc import Iterable

from zettel.model import Note
from zettel.text.background import rarity_of
from zettel.text.facts import Fact, facts
from zettel.text.tokens import tokenize

MIN_OVERLAP = 0.5
"""The lowest share of the shorter text, by rarity of its words, that texts without known facts have in common."""
MIN_RARITY = 0.2
"""The lowest rarity of a word that counts: "price" counts, "people" does not."""


def concern_same_matter(note: Note, other: Note) -> bool:
    """Return whether two notes state facts of one owner and attribute, or, without known facts, share rare words.

    "Ann drinks flat whites." and "Ann rents a one-bedroom flat." share a word but concern two matters.
    """
    own, others = facts(note), facts(other)
    if own and others:
        return any(_is_same(fact, earlier) for fact in own for earlier in others)
    first, second = (_rare(each.content) for each in (note, other))
    shorter = min(_rarity(first), _rarity(second))
    return shorter > 0 and _rarity(first & second) >= MIN_OVERLAP * shorter


def _is_same(fact: Fact, other: Fact) -> bool:
    persons = fact.owner.person, other.owner.person
    if all(persons) and persons[0].isdisjoint(persons[1]):
        return False
    return (fact.attribute, fact.owner.path) == (other.attribute, other.owner.path) and (
        fact.thing == other.thing or not fact.thing.isdisjoint(other.thing)
    )


def _rare(text: str) -> frozenset[str]:
    return frozenset(token for token in tokenize(text) if rarity_of(token) >= MIN_RARITY)


def _rarity(tokens: Iterable[str]) -> float:
    return sum(map(rarity_of, tokens))
