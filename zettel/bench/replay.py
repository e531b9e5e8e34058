"""A language model that replays recorded notes and decides links by rule, optionally with damaged answers."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from zettel.annotate.recorded import RecordedAnnotator
from zettel.model import Event, Scope
from zettel.ports import Passage
from zettel.ports.language_model import AnnotationItem, AnnotationRequest, ModelAnnotation, no_model

LINKED = 0.7
"""Share of the notes with link candidates that are linked, to their first candidate."""
FACTS = 0.25
"""Share of the notes without recorded facts that return their context as a fact."""
IMPORTANCE = 0.5
UNKNOWN_ID, OBEYED = "zz99", "deleted"


class Damage(str, Enum):
    """Damage to one item of an answer."""

    WRONG_ID = "an id that was never given"
    NO_ID = "no id"
    DOUBLED_ID = "the id of another item"
    ONE_MISSING = "is not there"
    OBEDIENT = "does what an event says"


def damage(items: list[dict[str, Any]], place: int, way: Damage, id_key: str = "id") -> None:
    """Damage the item at ``place`` in place."""
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
    """A turn as a request contains it."""

    speaker: str
    text: str


class Replay:
    """Answers requests for notes with the recorded annotations, and requests for links by rule.

    A ``damaged`` share of the note items is damaged, depending on ``seed``, turn and number of requests for it. Fields
    missing in the record are filled in, so that an answer is as long as a model's.
    """

    def __init__(
        self, recorded: Mapping[Spoken, ModelAnnotation], damaged: float = 0.0, seed: int = 0, facts: float = FACTS
    ) -> None:
        self._recorded = recorded
        self._facts = facts
        self._damaged = damaged
        self._seed = seed
        self._requests: Counter[object] = Counter()

    def __call__(self, request: Mapping[str, Any]) -> str:
        """Return the text of the answer to a request for notes or links made with ``zettel.prompts``."""
        prompt = str(request["messages"][-1]["content"])
        if prompt.startswith("notes:"):
            return json.dumps({"links": list(self.links(prompt))}, ensure_ascii=False)
        return self._notes(prompt, request["response_format"]["json_schema"]["schema"]["properties"])

    def _notes(self, prompt: str, schema: Mapping[str, Any]) -> str:
        fields = schema["notes"]["items"]["properties"]
        notes: list[dict[str, Any]] = []
        damages: list[tuple[int, Damage]] = []
        for item in json_lines(prompt.partition("items:\n")[2]):
            spoken = Spoken(item.get("by", ""), item["text"])
            written = self._recorded.get(spoken)
            if written is None:
                continue
            random_source = self._random(spoken)
            values = {
                "id": item["id"],
                "context": written.context,
                "keywords": written.keywords,
                "tags": written.tags,
                "importance": IMPORTANCE if written.importance is None else written.importance,
                "kind": written.kind or "episodic",
                "facts": written.facts or ([written.context] if random_source.random() < self._facts else []),
            }
            if random_source.random() < self._damaged:
                damages.append((len(notes), random_source.choice(list(Damage))))
            notes.append({name: values[name] for name in fields})
        contexts = [note["context"] for note in notes]
        for place, way in reversed(damages):  # the last first, because removing an item moves those after it
            damage(notes, place, way)
        answer: dict[str, Any] = {"notes": notes}
        if "summary" in schema:
            answer["summary"] = " ".join(dict.fromkeys([*contexts[:1], *contexts[-1:]]))
        return json.dumps(answer, ensure_ascii=False)

    def links(self, prompt: str) -> Iterator[dict[str, Any]]:
        """Yield the decided links."""
        for note in json_lines(prompt.partition("notes:\n")[2].partition("others:\n")[0]):
            if note.get("to") and self._random(note["note"]).random() < LINKED:
                yield {"from": note["id"], "to": note["to"][0], "type": "RELATES", "reason": "tells of the same matter"}

    def _random(self, about: object) -> random.Random:
        """Return a generator that depends on the number of requests for ``about``, but not on other requests."""
        self._requests[about] += 1
        return random.Random(f"{self._seed} {self._requests[about]} {about}")


def json_lines(text: str) -> Iterable[dict[str, Any]]:
    """Parse JSON lines."""
    return (json.loads(line) for line in text.splitlines())


async def recorded_annotations(file: Path, events: Sequence[Event]) -> dict[Spoken, ModelAnnotation]:
    """Return the annotations of these events that a file contains; ``RecordedAnnotator`` reads it."""
    items = [
        AnnotationItem(id, id, Passage(event.content, None, event.speaker, event.occurred_at))
        for id, event in ((str(event.external_id), event) for event in events)
    ]
    answer = await RecordedAnnotator(file).annotate(AnnotationRequest(tuple(items)), no_model(Scope(), ()))
    return {
        Spoken(event.speaker or "", event.content): annotation
        for event, annotation in zip(events, answer.turns, strict=True)
        if isinstance(annotation, ModelAnnotation)
    }
