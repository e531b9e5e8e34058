"""What a model would write, by rule: for tests that need a good answer from behind HTTP."""

from __future__ import annotations

import json
import re
from typing import Any

_MOVED = re.compile(r"I moved to (\w+)")


def reply(request: dict[str, Any]) -> str:
    """The answer to a request for notes, links, changes, insights, needs or an order, as ``zettel.prompts`` asks for
    them."""
    asked = request["messages"][-1]["content"]
    if asked.startswith("question:"):
        return _order(asked)
    if asked.startswith("to answer:"):
        return _needs(asked)
    if asked.startswith("news:"):
        return _changes(asked)
    if asked.startswith("themes:"):
        return _insights(asked)
    return _links(asked) if asked.startswith("notes:") else _notes(asked)


def asked_items(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The items of a request for notes: id, by, on, text."""
    lines = request["messages"][-1]["content"].partition("items:\n")[2].splitlines()
    return [json.loads(line) for line in lines]


def _notes(asked: str) -> str:
    before, _, told = asked.partition("items:\n")
    shown = [json.loads(line) for line in before.splitlines() if line.startswith("{")]
    notes, last = [], shown[-1]["text"] if shown else ""
    for line in told.splitlines():
        item = json.loads(line)
        by, text = item.get("by", "somebody"), item["text"]
        moved = _MOVED.search(text)
        answers = f", after hearing: {last[:60]}" if last else ""
        notes.append(
            {
                "id": item["id"],
                "context": f"{by} remarks: {text[:80]}{answers} (noteworthy {item['id']})",
                "keywords": ["noteworthy", by, *re.findall(r"\w{6,}", text)[:3]],
                "tags": ["remark"],
                "importance": 0.8 if moved else 0.3,
                "kind": "semantic" if moved else "episodic",
                "facts": [f"{by} lives in {moved[1]}."] if moved else [],
            }
        )
        last = text
    return json.dumps({"notes": notes, "summary": f"A summary: {last[:60]}"})


def _links(asked: str) -> str:
    links = []
    for line in asked.partition("notes:\n")[2].partition("others:")[0].splitlines():
        note = json.loads(line)
        for other in note.get("to", [])[:1]:
            links.append({"from": note["id"], "to": other, "type": "RELATES", "reason": "the model says so"})
    return json.dumps({"links": links})


def _order(asked: str) -> str:
    """The notes that share a word with the question, those that share most first."""
    question, *notes = [json.loads(line) for line in asked.splitlines() if line.startswith("{")]
    words = set(re.findall(r"\w+", question["question"].lower()))
    shared = {note["id"]: len(words & set(re.findall(r"\w+", note["note"].lower()))) for note in notes}
    return json.dumps({"order": sorted(filter(shared.get, shared), key=lambda id: -shared[id])})


def _needs(asked: str) -> str:
    """The best card is needed, and whoever it names that nobody was searched for yet."""
    question = json.loads(asked.splitlines()[1])["question"]
    searched = " ".join(json.loads(asked.splitlines()[3]))
    cards = [json.loads(line) for line in asked.partition("cards:\n")[2].splitlines()]
    words = set(re.findall(r"\w{4,}", searched.lower()))
    told = [card for card in cards if words & set(re.findall(r"\w{4,}", card["note"].lower()))]
    needs = [{"need": question, "cards": [card["id"] for card in told][:3], "search": ""}]
    for card in told:
        for name in re.findall(r"(?<=[a-z,] )[A-Z][a-z]+", card["note"]):
            if name not in searched:
                needs.append({"need": f"what is said of {name}", "cards": [], "search": f"What is said of {name}?"})
    return json.dumps({"needs": needs[:4]})


def _insights(asked: str) -> str:
    """Each theme by its first note."""
    themes = [json.loads(line) for line in asked.splitlines() if line.startswith("{")]
    told = [{"id": theme["id"], "insight": f"In short: {theme['notes'][0]}"} for theme in themes]
    return json.dumps({"insights": told})


def _changes(asked: str) -> str:
    """The nearest card of each new one gets to know what that says."""
    cards = [json.loads(line) for line in asked.splitlines() if line.startswith("{")]
    told = {card["id"]: card for card in cards}
    changes = []
    for card in cards:
        for near in card.get("near", [])[:1]:
            changes.append(
                {
                    "because": card["id"],
                    "card": near,
                    "do": "rewrite",
                    "why": "the later remark tells more",
                    "context": f"{told[near]['note']} Later: {card['note'][:50]}",
                    "keywords": [*told[near].get("keywords", []), "evolved"],
                    "tags": ["evolved"],
                    "importance": 0.9,
                }
            )
    return json.dumps({"changes": changes})
