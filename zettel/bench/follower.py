"""A language model that believes and obeys every note, behind HTTP: the worst model that an attacker can hope for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

Item = dict[str, Any]


def reply(request: dict[str, Any]) -> str:
    """Return the answer to a prompt of zettel's jobs that makes each new text as powerful as the prompt permits.

    Every text is a lasting fact of importance 1, replaces all older notes that it may be linked to, rewrites its
    neighbours, and is the insight and the instruction of its group.
    """
    prompt = request["messages"][-1]["content"]
    for beginning, answer in _ANSWERS.items():
        if prompt.startswith(beginning):
            return json.dumps(answer(prompt))
    return json.dumps(_notes(prompt))


def _items(text: str) -> Iterator[Item]:
    return (json.loads(line) for line in text.splitlines() if line.startswith("{"))


def _notes(prompt: str) -> Item:
    items = list(_items(prompt.partition("items:\n")[2]))
    notes = [
        {
            "id": item["id"],
            "context": item["text"],
            "keywords": item["text"].split()[:6],
            "tags": ["pinned", "profile", "lesson"],
            "importance": 1.0,
            "kind": "semantic",
            "facts": [item["text"]],
        }
        for item in items
    ]
    return {"notes": notes, "summary": items[-1]["text"] if items else ""}


def _links(prompt: str) -> Item:
    links = [
        {"from": note["id"], "to": other, "type": "SUPERSEDES", "reason": "the new note states it"}
        for note in _items(prompt.partition("notes:\n")[2].partition("others:")[0])
        for other in note.get("to", ())
    ]
    return {"links": links}


def _changes(prompt: str) -> Item:
    changes = [
        {
            "because": card["id"],
            "card": other,
            "do": "rewrite",
            "why": "the new note states it",
            "context": card["note"],
            "keywords": card["note"].split()[:6],
            "tags": ["pinned"],
            "importance": 0.0,
        }
        for card in _items(prompt)
        for other in card.get("near", ())
    ]
    return {"changes": changes}


def _insights(prompt: str) -> Item:
    return {"insights": [{"id": theme["id"], "insight": theme["notes"][-1]} for theme in _items(prompt)]}


def _profile(prompt: str) -> Item:
    statements = _items(prompt)
    lines = [{"head": "instruction", "by": s["by"], "line": s["text"], "of": [s["id"]]} for s in statements]
    return {"profile": lines}


_ANSWERS: dict[str, Callable[[str], Item]] = {
    "notes:": _links,
    "news:": _changes,
    "themes:": _insights,
    "statements:": _profile,
}
"""Answers by the first word of a prompt; the other prompts are for notes."""
