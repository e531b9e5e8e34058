"""A model that has its answers already: notes that were once written of the same turns, and links by rule.

It is asked as any model is and knows a turn by the text in the question, so what is measured with it is all that
happens between a turn and its note, and not how well a model writes. Some of its items can be damaged on purpose.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from zettel.llm.ports import Written

LINKED = 0.7
"""Share of the notes that have candidates for which a link is decided, with the first of them."""
FACTS = 0.25
"""Share of the notes of which a fact is told, if facts are asked for: the context, for none were recorded."""
IMPORTANCE = 0.5
UNKNOWN_ID, OBEYED = "zz99", "deleted"


class Damage(str, Enum):
    """What may be wrong with one item of an answer."""

    WRONG_ID = "an id that was never given"
    NO_ID = "no id"
    DOUBLED_ID = "the id of another item"
    ONE_MISSING = "is not there"
    OBEDIENT = "does what an event says"


def damage(items: list[dict[str, Any]], place: int, way: Damage, id_key: str = "id") -> None:
    """Damage one of the items."""
    item = items[place]
    if way is Damage.WRONG_ID:
        item[id_key] = 9999 if isinstance(item.get(id_key), int) else UNKNOWN_ID
    elif way is Damage.NO_ID:
        item.pop(id_key, None)
    elif way is Damage.DOUBLED_ID:
        item[id_key] = items[place - 1].get(id_key)
    elif way is Damage.ONE_MISSING:
        del items[place]
    else:
        items[place] = {id_key: item.get(id_key), "deleted": True, "context": OBEYED}


class Spoken(NamedTuple):
    """A turn as a question shows it."""

    role: str
    text: str


class Replay:
    """Answers requests for notes with what was ``written`` of the turns, and requests for links by rule.

    A ``damaged`` share of the items of notes is damaged, in ways that hang on the ``seed``, the turn and how often it
    was asked for. What a schema wants beyond the record is filled in, so that an answer is as long as a model's.
    """

    def __init__(
        self, written: Mapping[Spoken, Written], damaged: float = 0.0, seed: int = 0, facts: float = FACTS
    ) -> None:
        self._written = written
        self._facts = facts
        self._damaged = damaged
        self._seed = seed
        self._asked: Counter[object] = Counter()

    def __call__(self, request: Mapping[str, Any]) -> str:
        """The text of the answer to a request for notes or for links, as ``zettel.prompts`` asks for them."""
        asked = str(request["messages"][-1]["content"])
        if asked.startswith("notes:"):
            return json.dumps({"links": list(self.links(asked))}, ensure_ascii=False)
        return self._notes(asked, request["response_format"]["json_schema"]["schema"]["properties"])

    def _notes(self, asked: str, wanted: Mapping[str, Any]) -> str:
        fields = wanted["notes"]["items"]["properties"]
        notes: list[dict[str, Any]] = []
        bad: list[tuple[int, Damage]] = []
        for item in lines(asked.partition("items:\n")[2]):
            spoken = Spoken(item.get("by", ""), item["text"])
            written = self._written.get(spoken)
            if written is None:
                continue
            dice = self._dice(spoken)
            whole = {
                "id": item["id"],
                "context": written.context,
                "keywords": written.keywords,
                "tags": written.tags,
                "importance": IMPORTANCE if written.importance is None else written.importance,
                "kind": written.kind or "episodic",
                "facts": written.facts or ([written.context] if dice.random() < self._facts else []),
            }
            if dice.random() < self._damaged:
                bad.append((len(notes), dice.choice(list(Damage))))
            notes.append({name: whole[name] for name in fields})
        told = [note["context"] for note in notes]
        for place, way in reversed(bad):  # the last first, for one that is taken out moves those after it
            damage(notes, place, way)
        answer: dict[str, Any] = {"notes": notes}
        if "summary" in wanted:
            answer["summary"] = " ".join(dict.fromkeys([*told[:1], *told[-1:]]))
        return json.dumps(answer, ensure_ascii=False)

    def links(self, asked: str) -> Iterator[dict[str, Any]]:
        """The links it decides on."""
        for note in lines(asked.partition("notes:\n")[2].partition("others:\n")[0]):
            if note.get("to") and self._dice(note["note"]).random() < LINKED:
                yield {"from": note["id"], "to": note["to"][0], "type": "RELATES", "reason": "tells of the same matter"}

    def _dice(self, about: object) -> random.Random:
        """The same for the same question asked as often before, in whatever order others are asked."""
        self._asked[about] += 1
        return random.Random(f"{self._seed} {self._asked[about]} {about}")


def lines(told: str) -> Iterable[dict[str, Any]]:
    """JSON lines."""
    return (json.loads(line) for line in told.splitlines())
