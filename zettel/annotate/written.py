"""Whether what stands in an answer is a note's fields: each item by itself, so that a bad one costs only itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from zettel.annotate.tokens import phrase_key, tokenize
from zettel.llm.ports import Flaw, Turn, Written
from zettel.model import Kind, storable

MAX_CONTEXT = 800
"""Characters: three long sentences. A longer one repeats itself, or the question."""
MAX_FACT = 400
MAX_PHRASE = 80
"""Characters of a keyword or tag; a longer one is a sentence, and is left out."""
MAX_KEYWORDS = 12
MAX_TAGS = 6
MAX_FACTS = 4
KINDS = (Kind.EPISODIC, Kind.SEMANTIC, Kind.PROCEDURAL)
"""What a single event can be; an insight takes several."""
MISPLACED_TOKENS = 5
"""An item with so many more words of another turn than of its own belongs to that one: of good notes 1 in 800, of notes
shifted by one turn every second."""

UNREADABLE = Flaw("the model's answer cannot be read")
NO_ITEM = Flaw("the model's answer holds no item for this note")
DOUBLED = Flaw("the model's answer holds several items for this note")
NOT_FIELDS = "the model's item for this note is not as it should be: "
ECHO = Flaw("the model's item for this note repeats what it was shown")
SAME = Flaw("the model's answer says the same of several notes that do not")
MISPLACED = Flaw("the model's item for this note tells of another one")
UNFOUNDED = Flaw("the model's item for this note has no word in common with what it was shown")


# ---------------------------------------------------------------------------------------------------------- one record


def one_line(text: str) -> str:
    """The text on one line, without what no store can keep."""
    return storable(" ".join(text.replace("\x00", " ").encode("utf-8", "ignore").decode("utf-8").split()))


def _line(value: Any) -> Any:
    return one_line(value) if isinstance(value, str) else value


def _phrases(value: Any) -> Any:
    """Phrases as a list: weak models write them as one text with commas, and years as numbers."""
    if isinstance(value, str):
        value = value.replace(";", ",").split(",")
    if not isinstance(value, list):
        return value
    return [str(phrase) if type(phrase) is int else phrase for phrase in value]


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _share(value: Any) -> float | None:
    """A number from 0 to 1; None for anything else, for nothing hangs on it."""
    return float(value) if isinstance(value, (int, float)) and 0 <= value <= 1 else None


def _kind(value: Any) -> Kind | None:
    return next((kind for kind in KINDS if kind.value == value), None)


_Line: TypeAlias = Annotated[str, BeforeValidator(_line)]
_Phrases: TypeAlias = Annotated[tuple[_Line, ...], BeforeValidator(_phrases)]


class Fields(BaseModel):
    """The fields of a note in one record, whoever wrote it; what else stands in it is ignored."""

    model_config = ConfigDict(frozen=True)

    context: Annotated[str, Field(min_length=1, max_length=MAX_CONTEXT), BeforeValidator(_line)]
    keywords: _Phrases = ()
    tags: _Phrases = ()
    importance: Annotated[float | None, BeforeValidator(_share)] = None
    kind: Annotated[Kind | None, BeforeValidator(_kind)] = None
    facts: Annotated[tuple[_Line, ...], BeforeValidator(_listed)] = ()

    def written(self) -> Written:
        """The same within bounds: nothing empty, doubled or endless."""
        return Written(
            context=self.context,
            keywords=_some(self.keywords, MAX_PHRASE, MAX_KEYWORDS),
            tags=_some(self.tags, MAX_PHRASE, MAX_TAGS),
            importance=self.importance,
            kind=self.kind,
            facts=_some(self.facts, MAX_FACT, MAX_FACTS),
        )


def _some(texts: Iterable[str], longest: int, most: int) -> tuple[str, ...]:
    told: dict[str, str] = {}
    for text in texts:
        if text and len(text) <= longest:
            told.setdefault(text.casefold(), text)
    return tuple(told.values())[:most]


def wrong_with(error: ValidationError) -> str:
    """Which fields are wrong and how, without what stands in them."""
    wrong = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(sorted({f"{first['loc'][0] if first['loc'] else 'item'}: {_told(first)}" for first in wrong}))


def _told(first: Mapping[str, Any]) -> str:
    kinds = {"missing": "missing", "string_too_short": "empty", "string_too_long": "too long"}
    return kinds.get(first["type"], "of the wrong type")


# ---------------------------------------------------------------------------------------------------------- one answer


def judged(
    turns: Sequence[Turn],
    before: Sequence[Turn],
    ids: Mapping[str, str],
    items: Iterable[Any],
    shown: frozenset[str],
) -> list[Written | Flaw]:
    """For each turn, in order, what the one valid item with its id says.

    ``ids`` are the ids that were asked with, by note; ``shown`` the contexts of the worked examples as ``phrase_key``
    has them. An item with another id touches nothing. Whether items are mixed up or made up is told from their words. A
    turn that is read alone may be told in words all of one's own, if there are keywords to find it by.
    """
    by_id: dict[str, list[Mapping[str, Any]]] = {}
    for item in items:
        if isinstance(item, dict):  # an id of digits alone comes back as a number from weak models
            by_id.setdefault(str(item.get("id")).strip(), []).append(item)
    outcomes = [_outcome(turn, by_id.get(ids[turn.note], ()), shown) for turn in turns]
    return _compared(turns, before, outcomes)


def _outcome(turn: Turn, items: Sequence[Mapping[str, Any]], shown: frozenset[str]) -> Written | Flaw:
    if len(items) != 1:
        return DOUBLED if items else NO_ITEM
    try:
        written = Fields.model_validate(dict(items[0])).written()
    except ValidationError as error:
        return Flaw(NOT_FIELDS + wrong_with(error))
    context = phrase_key(written.context)
    if context in shown or (not written.keywords and context == phrase_key(turn.passage.content)):
        return ECHO
    return written


def _compared(
    turns: Sequence[Turn], before: Sequence[Turn], outcomes: Sequence[Written | Flaw]
) -> list[Written | Flaw]:
    said = [_tokens(turn) for turn in turns]
    around = frozenset[str]().union(*said, *map(_tokens, before))
    told_of: dict[str, set[tuple[str | None, str]]] = {}  # of turns that say the same a model may say the same
    for turn, outcome in zip(turns, outcomes, strict=True):
        if isinstance(outcome, Written):
            own_words = turn.passage.role, phrase_key(turn.passage.content)
            told_of.setdefault(phrase_key(outcome.context), set()).add(own_words)
    checked: list[Written | Flaw] = []
    for own, outcome in zip(said, outcomes, strict=True):
        flaw = None
        if isinstance(outcome, Written):
            told = frozenset(tokenize(" ".join((outcome.context, *outcome.keywords))))
            if len(told_of[phrase_key(outcome.context)]) > 1:
                flaw = SAME
            elif not told & around and (len(said) > 1 or not outcome.keywords):
                flaw = UNFOUNDED
            elif max(len(told & other) for other in said) - len(told & own) >= MISPLACED_TOKENS:
                flaw = MISPLACED
        checked.append(flaw or outcome)
    return checked


def _tokens(turn: Turn) -> frozenset[str]:
    passage = turn.passage
    return frozenset(tokenize(" ".join((passage.role or "", passage.title or "", passage.content))))
