"""Finds the kind of a name (person, organisation, place or thing) from the words in and around it.

Each cue has a weight; ``languages/entities.json`` contains the words and cues of English and German. ``before`` cues
match the end of the text before a name, ``after`` cues the beginning of the text after it. ``single_relations`` are
those of which a person has one at a time: "my wife Ana" gives Ana a second name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from zettel.model import ENTITY_KINDS, EntityKind
from zettel.text.name_lists import products, regions, towns

CONTEXT = 60
"""Characters before and after a name in which cues are searched."""
LEAST = 2.0
"""The lowest weight of a kind."""
LEAD = 1.25
"""The lowest ratio of the weights of the first and the second kind."""
SPEAKER = 6.0
"""The weight of a person for a name that is a speaker."""
SHORT_NAME = 6
"""Shorter names show no kind by their ending: "Lisburg", but not "Burg"."""
MOST_CUES = 8.0
"""The highest weight of all cues around a name for one kind in one text."""
_TITLE, _GIVEN, _LAST_WORD, _TOWN, _CODE, _HANDLE, _NUMBERED, _QUOTED, _SONS = (
    4.0, 3.0, 4.0, 3.0, 4.0, 4.0, 2.0, 6.0, 3.0
)  # fmt: skip
_IS_CODE = re.compile(r"[\w-]+[/.][\w/.-]*\w|\w+(?:_\w+)+|[A-Z][A-Z0-9]+-\d+|[a-z]+[A-Z]\w*")
_LABEL = re.compile(r"[A-Z]{1,2}\d*|\d+")
_NO_NAME = frozenset({"I"})
"""Words at which two sentences were read as one name: "Gary I'm"."""
_QUOTES = '"\u201c\u201d\u00ab\u00bb\u300a\u300c'


class Named(NamedTuple):
    """A phrase for a person, such as "my wife" in "my wife Ana", and the name."""

    phrase: str
    name: str


class _Words(NamedTuple):
    titles: frozenset[str]
    given: frozenset[str]
    organisation: frozenset[str]
    organisation_endings: tuple[str, ...]
    kin: frozenset[str]
    place: frozenset[str]
    place_openers: frozenset[str]
    place_endings: tuple[str, ...]
    towns: frozenset[str]
    products: frozenset[str]
    none: frozenset[str]
    before: tuple[tuple[EntityKind, float, re.Pattern[str]], ...]
    after: tuple[tuple[EntityKind, float, re.Pattern[str]], ...]
    object: re.Pattern[str]
    """Matches before a name that cannot be a subject."""
    possessives: Mapping[str, str]
    """Each form with the plain one."""
    phrase: re.Pattern[str]
    """With the groups ``my`` and ``relation``."""
    relations: tuple[re.Pattern[str], ...]
    """With the group ``name``, too."""


def kind_of(weights: Mapping[EntityKind, float]) -> EntityKind | None:
    """Return the kind with the highest weight, None if none is sure."""
    ranked = sorted(ENTITY_KINDS, key=lambda kind: -weights.get(kind, 0.0))
    first, second = (weights.get(kind, 0.0) for kind in ranked[:2])
    return ranked[0] if first >= LEAST and first >= LEAD * second else None


def may_be_entity(name: str) -> bool:
    """Return whether a name may be one of an entity: not "Monday", "French", "E8", "GROUP BY" or a sentence."""
    words = name.split()
    lower = sum(word[0].islower() for word in words)
    is_shouted = len(words) > 1 and name.isupper()
    if is_shouted or not _NO_NAME.isdisjoint(word.partition("'")[0] for word in words):
        return False
    return not _LABEL.fullmatch(name) and name.casefold() not in _words().none and 2 * lower < max(len(words), 3)


def name_weights(name: str) -> dict[EntityKind, float]:
    """Return the weights of the kinds by the words of a name. Example: "Brightwater Labs" is an organisation."""
    words = _words()
    weights: dict[EntityKind, float] = {}
    low = [word.strip(".,").casefold() for word in name.split()]
    if not low:
        return {}
    if name.startswith("@"):
        return {"person": _HANDLE}
    if _IS_CODE.fullmatch(name):
        return {"thing": _CODE}
    key = " ".join(low)
    if (len(low) > 1 and low[0] in words.titles) or key in words.kin:
        weights["person"] = _TITLE
    if _is_organisation(low, words):
        weights["organisation"] = _LAST_WORD
    elif _is_place(low, words):
        weights["place"] = _LAST_WORD
    if "&" in name:
        weights["organisation"] = weights.get("organisation", 0.0) + _SONS
    if key in words.products:
        weights["thing"] = _CODE
    elif key in words.towns:
        weights["place"] = weights.get("place", 0.0) + _TOWN
    elif low[0] in words.given and "organisation" not in weights and "place" not in weights and len(low) < 4:
        weights["person"] = weights.get("person", 0.0) + _GIVEN
    if len(low) > 1 and low[-1].isdigit():
        weights["thing"] = weights.get("thing", 0.0) + _NUMBERED
    return weights


def _is_organisation(low: Sequence[str], words: _Words) -> bool:
    if len(low) > 1:
        return low[-1] in words.organisation or low[0] in words.organisation
    return low[0].endswith(words.organisation_endings) and low[0] not in words.organisation


def _is_place(low: Sequence[str], words: _Words) -> bool:
    if len(low) > 1:
        return low[-1] in words.place or low[0] in words.place_openers
    return len(low[0]) > SHORT_NAME and low[0].endswith(words.place_endings)


def context_weights(text: str, name: str) -> dict[EntityKind, float]:
    """Return the weights of the kinds by the words around each occurrence of a name in a text."""
    words = _words()
    weights: dict[EntityKind, float] = {}
    for before, after in _around(text, name):
        if before[-1:] and before[-1] in _QUOTES and after[:1] and after[0] in _QUOTES:
            weights["thing"] = weights.get("thing", 0.0) + _QUOTED
        best: dict[EntityKind, float] = {}
        for kind, weight, cue in words.before:
            if weight > best.get(kind, 0.0) and cue.search(before):
                best[kind] = weight
        for kind, weight in best.items():
            weights[kind] = weights.get(kind, 0.0) + weight
        best = {}
        is_object = words.object.search(before) is not None
        for kind, weight, cue in words.after:
            if kind == "person" and is_object:
                continue  # "my boss at Hydro wants": who wants is not Hydro
            if weight > best.get(kind, 0.0) and cue.match(after):
                best[kind] = weight
        for kind, weight in best.items():
            weights[kind] = weights.get(kind, 0.0) + weight
    if name.isupper() and " " not in name:  # "the GP", "in SQL"
        weights = {kind: weight for kind, weight in weights.items() if kind in ("organisation", "thing")}
    return {kind: min(weight, MOST_CUES) for kind, weight in weights.items()}


def relations_in(text: str) -> list[Named]:
    """Return the phrases of a text for persons, with their names.

    Example: "my wife" and "Ana" for "my wife Ana", "Ana, my wife," or "my wife is called Ana".
    It finds only relations of which a person has one at a time.
    """
    text = text.replace("\u2019", "'")
    found = [
        Named(_phrase(match["my"], match["relation"]), match["name"])
        for cue in _words().relations
        for match in cue.finditer(text)
        if match["name"].casefold() not in _words().titles  # "my boss Sig. Rossi" ends at the dot
    ]
    return list(dict.fromkeys(found))


def person_phrases(text: str) -> list[str]:
    """Return the phrases of a text that describe persons, such as "my wife" or "meine Frau"."""
    return list(dict.fromkeys(_phrase(match["my"], match["relation"]) for match in _words().phrase.finditer(text)))


def _phrase(my: str, relation: str) -> str:
    """Return a phrase in its plain form: "meine Frau" for "meiner Frau", "my wife" for "our wife"."""
    plain = _words().possessives[my.casefold()]
    return f"{plain} {relation.title() if plain.startswith('mein') else relation.casefold()}"


def _around(text: str, name: str) -> Iterator[tuple[str, str]]:
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        if not (start and text[start - 1].isalnum()) and not text[end : end + 1].isalnum():
            yield text[max(0, start - CONTEXT) : start], text[end : end + CONTEXT]
        start = text.find(name, end)


@cache
def _words() -> _Words:
    data = json.loads(files("zettel.text").joinpath("languages").joinpath("entities.json").read_text("utf-8"))
    lists = {name: value for name, value in data.items() if isinstance(value, str)}

    def words(name: str) -> frozenset[str]:
        return frozenset(data[name].split("|"))

    def cues(side: str) -> Iterable[tuple[EntityKind, float, re.Pattern[str]]]:
        for kind in ENTITY_KINDS:
            for weight, expressions in data["cues"][kind].get(side, {}).items():
                alternatives = "|".join(f"(?:{expression.format(**lists)})" for expression in expressions)
                yield kind, float(weight), re.compile(alternatives, re.IGNORECASE)

    possessives = dict(data["possessives"])
    lists["possessives"] = "|".join(possessives)
    my = rf"\b(?P<my>{lists['possessives']})\s+(?P<relation>%s)(?![\w-])"
    mine = my % data["single_relations"]
    name = r"(?P<name>(?-i:[A-Z\u00c0-\u00de])[\w'-]+(?:\s(?-i:[A-Z\u00c0-\u00de])[\w'-]+)*)"
    relations = (
        rf"{mine},?\s+{name}",
        rf"{mine}(?:'s\s+name)?\s+(?:is\s+(?:called\s+|named\s+)?|hei\u00dft\s+){name}(?=\s*(?:[.,;!)]|$|and\b|und\b))",
        rf"{name},?\s+(?:is\s+|ist\s+)?{mine}(?=\s*(?:[.,;!)]|$))",
    )
    return _Words(
        given=words("given_names"), titles=words("titles"), kin=words("titles") | words("relations"),
        organisation=words("organisation_words"), organisation_endings=tuple(words("organisation_endings")),
        place=words("place_words"), place_openers=words("place_openers"),
        place_endings=tuple(words("place_endings")), towns=towns() | regions(), products=products(),
        none=words("no_entities"), before=tuple(cues("before")), after=tuple(cues("after")),
        object=re.compile(rf"\b(?:{lists['prepositions']})\s+(?:the\s+)?$", re.IGNORECASE),
        possessives=possessives, phrase=re.compile(my % data["relations"], re.IGNORECASE),
        relations=tuple(re.compile(relation, re.IGNORECASE) for relation in relations),
    )  # fmt: skip
