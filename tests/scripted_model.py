"""Rule-based answers of a language model, for tests that require a good answer over HTTP."""

from __future__ import annotations

import json
import re
from typing import Any

_MOVED = re.compile(r"I moved to (\w+)")


def reply(request: dict[str, Any]) -> str:
    """Return the answer to any prompt of ``zettel.prompts``, as its rules for that kind of prompt give it."""
    prompt = request["messages"][-1]["content"]
    if prompt.startswith("memories:"):
        return _answer(prompt)
    if prompt.startswith("grade:"):
        return _verdict(prompt, request)
    if prompt.startswith("question:"):
        return _order(prompt)
    if prompt.startswith("to answer:"):
        return _needs(prompt)
    if prompt.startswith("news:"):
        return _changes(prompt)
    if prompt.startswith("statements:"):
        return _profile(prompt)
    if prompt.startswith("pairs:"):
        return json.dumps({"same": []})
    if prompt.startswith("themes:"):
        return _insights(prompt)
    return _links(prompt) if prompt.startswith("notes:") else _notes(prompt)


def asked_items(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the items of a request for notes: id, by, on, text."""
    lines = request["messages"][-1]["content"].partition("items:\n")[2].splitlines()
    return [json.loads(line) for line in lines]


def _notes(prompt: str) -> str:
    before, _, items = prompt.partition("items:\n")
    preceding = [json.loads(line) for line in before.splitlines() if line.startswith("{")]
    notes, last = [], preceding[-1]["text"] if preceding else ""
    for line in items.splitlines():
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


def _links(prompt: str) -> str:
    links = []
    for line in prompt.partition("notes:\n")[2].partition("others:")[0].splitlines():
        note = json.loads(line)
        for other in note.get("to", [])[:1]:
            links.append({"from": note["id"], "to": other, "type": "RELATES", "reason": "the model says so"})
    return json.dumps({"links": links})


def _answer(prompt: str) -> str:
    """Return the excerpt that shares most words with the question."""
    memories, _, question = prompt.rpartition("\nend of memories\nquestion:\n")
    words = set(re.findall(r"\w{4,}", json.loads(question.splitlines()[0])["question"].lower()))
    excerpts = [line for line in memories.splitlines() if line.startswith("- ")]
    best = max(excerpts, key=lambda line: len(words & set(re.findall(r"\w{4,}", line.lower()))), default="- Unknown.")
    return json.dumps({"answer": best.removeprefix("- ")})


def _verdict(prompt: str, request: dict[str, Any]) -> str:
    """Return the best label if the answer contains the reference or the criterion, otherwise the worst one."""
    grade = json.loads(prompt.splitlines()[1])
    labels = request["response_format"]["json_schema"]["schema"]["properties"]["verdict"]["enum"]
    wanted = grade.get("criterion") or grade["reference"]
    is_right = wanted.removeprefix("The answer states: ").lower() in grade["answer"].lower()
    return json.dumps({"reason": "It is compared.", "verdict": labels[0 if is_right else -1]})


def _order(prompt: str) -> str:
    """Return the notes that share a word with the question, those with most shared words first."""
    question, *notes = [json.loads(line) for line in prompt.splitlines() if line.startswith("{")]
    words = set(re.findall(r"\w+", question["question"].lower()))
    shared = {note["id"]: len(words & set(re.findall(r"\w+", note["note"].lower()))) for note in notes}
    return json.dumps({"order": sorted(filter(shared.get, shared), key=lambda id: -shared[id])})


def _needs(prompt: str) -> str:
    """Require the best cards, and search for each name in them that has not been searched."""
    question = json.loads(prompt.splitlines()[1])["question"]
    searched = " ".join(json.loads(prompt.splitlines()[3]))
    cards = [json.loads(line) for line in prompt.partition("cards:\n")[2].splitlines()]
    words = set(re.findall(r"\w{4,}", searched.lower()))
    matching = [card for card in cards if words & set(re.findall(r"\w{4,}", card["note"].lower()))]
    needs = [{"need": question, "cards": [card["id"] for card in matching][:3], "search": ""}]
    for card in matching:
        for name in re.findall(r"(?<=[a-z,] )[A-Z][a-z]+", card["note"]):
            if name not in searched:
                needs.append({"need": f"what is said of {name}", "cards": [], "search": f"What is said of {name}?"})
    return json.dumps({"needs": needs[:4]})


def _insights(prompt: str) -> str:
    """Summarise each theme by its first note."""
    themes = [json.loads(line) for line in prompt.splitlines() if line.startswith("{")]
    insights = [{"id": theme["id"], "insight": f"In short: {theme['notes'][0]}"} for theme in themes]
    return json.dumps({"insights": insights})


def _profile(prompt: str) -> str:
    """Repeat the statements of each person in the third person."""
    statements = [json.loads(line) for line in prompt.splitlines() if line.startswith("{")]
    return json.dumps(
        {
            "profile": [
                {"head": "lasting", "by": each["by"], "line": f"Once stated: {each['text']}", "of": [each["id"]]}
                for each in statements
            ]
        }
    )


def _changes(prompt: str) -> str:
    """Rewrite the nearest card of each new card with its text."""
    cards = [json.loads(line) for line in prompt.splitlines() if line.startswith("{")]
    by_id = {card["id"]: card for card in cards}
    changes = []
    for card in cards:
        for neighbour in card.get("near", [])[:1]:
            changes.append(
                {
                    "because": card["id"],
                    "card": neighbour,
                    "do": "rewrite",
                    "why": "the later remark tells more",
                    "context": f"{by_id[neighbour]['note']} Later: {card['note'][:50]}",
                    "keywords": [*by_id[neighbour].get("keywords", []), "evolved"],
                    "tags": ["evolved"],
                    "importance": 0.9,
                }
            )
    return json.dumps({"changes": changes})
