"""Validates the items of an answer as note fields, each by itself, so that a bad item costs only itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from zettel.model import Kind, storable
from zettel.ports.language_model import AnnotationItem, InvalidItem, ModelAnnotation
from zettel.text.tokens import phrase_key, tokenize

MAX_CONTEXT = 800
"""Characters: three long sentences. A longer context repeats itself or the request."""
MAX_FACT = 400
MAX_PHRASE = 80
"""Characters of a keyword or tag; a longer one is a sentence and is dropped."""
MAX_KEYWORDS = 12
MAX_TAGS = 6
MAX_FACTS = 4
KINDS = (Kind.EPISODIC, Kind.SEMANTIC, Kind.PROCEDURAL)
"""The kinds of a single event; an insight needs several events."""
MISPLACED_TOKENS = 5
"""An item that shares this many more tokens with another turn than with its own belongs to that turn. This is true of 1
in 800 good notes, and of every second note that is shifted by one turn."""

UNREADABLE = InvalidItem("the model's answer cannot be read")
NO_ITEM = InvalidItem("the model's answer contains no item for this note")
DUPLICATE_ITEM = InvalidItem("the model's answer contains several items for this note")
INVALID_FIELDS = "the model's item for this note is invalid: "
REPEATS_PROMPT = InvalidItem("the model's item for this note repeats the prompt")
SAME_FOR_ALL = InvalidItem("the model's answer is the same for several different notes")
MISPLACED = InvalidItem("the model's item for this note is about another note")
UNRELATED = InvalidItem("the model's item for this note shares no word with its prompt")


# ---------------------------------------------------------------------------------------------------------- one record


def one_line(text: str) -> str:
    """Return the text on one line, without characters that no store accepts."""
    return storable(" ".join(text.replace("\x00", " ").encode("utf-8", "ignore").decode("utf-8").split()))


def _line(value: Any) -> Any:
    return one_line(value) if isinstance(value, str) else value


def _phrases(value: Any) -> Any:
    """Return phrases as a list: weak models write one text with commas, and years as numbers."""
    if isinstance(value, str):
        value = value.replace(";", ",").split(",")
    if not isinstance(value, list):
        return value
    return [str(phrase) if type(phrase) is int else phrase for phrase in value]


def _share(value: Any) -> float | None:
    """Return a number from 0 to 1; None for anything else, because it is optional."""
    return float(value) if isinstance(value, (int, float)) and 0 <= value <= 1 else None


class RatedFact(NamedTuple):
    """A fact with its confidence, 0 to 1."""

    text: str
    confidence: float = 1.0


def _facts(value: Any) -> Any:
    """Return facts with their ratings: 1 for a bare text, as in answers to earlier prompts, and for a wrong rating."""
    if not isinstance(value, list):
        return [(_line(value), 1.0)] if isinstance(value, str) else value
    facts = [fact if isinstance(fact, dict) else {"text": fact} for fact in value]
    rated = [(fact.get("text"), _share(fact.get("confidence"))) for fact in facts]
    return [(_line(text), 1.0 if rating is None else rating) for text, rating in rated]


def _kind(value: Any) -> Kind | None:
    return next((kind for kind in KINDS if kind.value == value), None)


_Line: TypeAlias = Annotated[str, BeforeValidator(_line)]
_Phrases: TypeAlias = Annotated[tuple[_Line, ...], BeforeValidator(_phrases)]


class Fields(BaseModel):
    """The note fields in one record of a model or a file; other fields are ignored."""

    model_config = ConfigDict(frozen=True)

    context: Annotated[str, Field(min_length=1, max_length=MAX_CONTEXT), BeforeValidator(_line)]
    keywords: _Phrases = ()
    tags: _Phrases = ()
    importance: Annotated[float | None, BeforeValidator(_share)] = None
    kind: Annotated[Kind | None, BeforeValidator(_kind)] = None
    facts: Annotated[tuple[RatedFact, ...], BeforeValidator(_facts)] = ()

    def annotation(self) -> ModelAnnotation:
        """Return the fields without empty, duplicate or overlong entries."""
        facts = _bounded((fact.text for fact in self.facts), MAX_FACT, MAX_FACTS)
        rating: dict[str, float] = {}
        for fact in self.facts:
            rating.setdefault(fact.text.casefold(), fact.confidence)
        ratings = tuple(rating[text.casefold()] for text in facts)
        return ModelAnnotation(
            context=self.context,
            keywords=_bounded(self.keywords, MAX_PHRASE, MAX_KEYWORDS),
            tags=_bounded(self.tags, MAX_PHRASE, MAX_TAGS),
            importance=self.importance,
            kind=self.kind,
            facts=facts,
            confidences=ratings if min(ratings, default=1.0) < 1 else (),
        )


def _bounded(texts: Iterable[str], longest: int, most: int) -> tuple[str, ...]:
    unique: dict[str, str] = {}
    for text in texts:
        if text and len(text) <= longest:
            unique.setdefault(text.casefold(), text)
    return tuple(unique.values())[:most]


def wrong_with(error: ValidationError) -> str:
    """Return which fields are wrong and how, without their content."""
    wrong = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(sorted({f"{first['loc'][0] if first['loc'] else 'item'}: {_problem(first)}" for first in wrong}))


def _problem(first: Mapping[str, Any]) -> str:
    kinds = {"missing": "missing", "string_too_short": "empty", "string_too_long": "too long"}
    return kinds.get(first["type"], "of the wrong type")


# ---------------------------------------------------------------------------------------------------------- one answer


def validated(
    turns: Sequence[AnnotationItem],
    before: Sequence[AnnotationItem],
    ids: Mapping[str, str],
    items: Iterable[Any],
    shown: frozenset[str],
) -> list[ModelAnnotation | InvalidItem]:
    """Return for each turn, in order, the one valid item with its id, or why there is none.

    ``ids`` are the ids of the prompt, by note. ``shown`` are the contexts of the worked examples, as ``phrase_key``
    normalises them. Items with other ids are ignored. Swapped or invented items are detected by their words. The
    annotation of a single turn may use other words than the turn, if it has keywords.
    """
    by_id: dict[str, list[Mapping[str, Any]]] = {}
    for item in items:
        if isinstance(item, dict):  # an id of digits alone comes back as a number from weak models
            by_id.setdefault(str(item.get("id")).strip(), []).append(item)
    outcomes = [_outcome(turn, by_id.get(ids[turn.note], ()), shown) for turn in turns]
    return _compared(turns, before, outcomes)


def _outcome(
    turn: AnnotationItem, items: Sequence[Mapping[str, Any]], shown: frozenset[str]
) -> ModelAnnotation | InvalidItem:
    if len(items) != 1:
        return DUPLICATE_ITEM if items else NO_ITEM
    try:
        written = Fields.model_validate(dict(items[0])).annotation()
    except ValidationError as error:
        return InvalidItem(INVALID_FIELDS + wrong_with(error))
    context = phrase_key(written.context)
    if context in shown or (not written.keywords and context == phrase_key(turn.passage.content)):
        return REPEATS_PROMPT
    return written


def _compared(
    turns: Sequence[AnnotationItem], before: Sequence[AnnotationItem], outcomes: Sequence[ModelAnnotation | InvalidItem]
) -> list[ModelAnnotation | InvalidItem]:
    turn_tokens = [_tokens(turn) for turn in turns]
    all_tokens = frozenset[str]().union(*turn_tokens, *map(_tokens, before))
    turns_of: dict[str, set[tuple[str | None, str]]] = {}  # equal turns may have equal contexts
    for turn, outcome in zip(turns, outcomes, strict=True):
        if isinstance(outcome, ModelAnnotation):
            own_words = turn.passage.speaker, phrase_key(turn.passage.content)
            turns_of.setdefault(phrase_key(outcome.context), set()).add(own_words)
    checked: list[ModelAnnotation | InvalidItem] = []
    for own, outcome in zip(turn_tokens, outcomes, strict=True):
        invalid = None
        if isinstance(outcome, ModelAnnotation):
            tokens = frozenset(tokenize(" ".join((outcome.context, *outcome.keywords))))
            if len(turns_of[phrase_key(outcome.context)]) > 1:
                invalid = SAME_FOR_ALL
            elif not tokens & all_tokens and (len(turn_tokens) > 1 or not outcome.keywords):
                invalid = UNRELATED
            elif max(len(tokens & other) for other in turn_tokens) - len(tokens & own) >= MISPLACED_TOKENS:
                invalid = MISPLACED
        checked.append(invalid or outcome)
    return checked


def _tokens(turn: AnnotationItem) -> frozenset[str]:
    passage = turn.passage
    return frozenset(tokenize(" ".join((passage.speaker or "", passage.title or "", passage.content))))
