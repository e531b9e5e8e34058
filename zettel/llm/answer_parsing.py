"""Parses the items of a model's answer. The caller validates each item."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from zettel.errors import InvalidModelOutput
from zettel.ports.language_model import Answer, Ask, Request

_START = re.compile(r'[{\[]\s*["{\[\]}]')
"""The start of JSON between words: a bracket, and a character that can follow it."""
_FENCE = re.compile(r"```(?:\w*\n)?(.*?)(?:```|\Z)", re.DOTALL)
_BRACKET = re.compile(r"[{}\[\]]")
MAX_DEPTH = 50
"""Open brackets, those inside strings included. Repairing deeper JSON takes seconds, and no real answer is deeper."""
MAX_REPAIRED = 200_000
"""Characters of broken JSON that is repaired; repairing takes some 7 seconds for a million."""
_THOUGHT_ENDS = "</think>"
"""The end of the visible reasoning of some models."""


async def ask_for_items(ask: Ask, request: Request, notes: Sequence[str]) -> tuple[list[Any], Answer] | None:
    """Send a request about these notes; return the items of the answer, and the answer. None if it is unusable.

    Raises what ``ask`` raises, except for a refusal or an answer without content that cost tokens.
    """
    try:
        answer = await ask(request, notes)
    except InvalidModelOutput as error:
        if error.spent is None:
            raise
        return None
    try:
        return items(answer.text, answer.cut), answer
    except InvalidModelOutput:
        return None


def items(text: str, cut: bool = False) -> list[Any]:
    """Return the items of an answer: the list in the object of the schema, a bare list, or one bare item.

    Strict JSON is tried first, with or without words and code fences around it, then one repair. An answer that was
    ``cut`` loses its last item, unless it is complete. Raises ``InvalidModelOutput`` if there is no JSON.
    """
    answer = text.rpartition(_THOUGHT_ENDS)[2].strip()
    try:
        return _listed(json.loads(answer))
    except (ValueError, RecursionError):
        pass
    fenced = _FENCE.search(answer)
    body = fenced[1] if fenced and _START.search(fenced[1]) else answer
    values = _embedded(body)
    if values is not None:
        return _listed(values[0] if len(values) == 1 else values)
    return _repaired(body, cut)


def _embedded(body: str) -> list[Any] | None:
    """Return all JSON values between the words of a text (some models answer line by line); None if one is broken."""
    decoder = json.JSONDecoder()
    values: list[Any] = []
    place = 0
    while start := _START.search(body, place):
        try:
            value, place = decoder.raw_decode(body, start.start())
        except (ValueError, RecursionError):
            return None
        values.append(value)
    return values or None


def _repaired(body: str, cut: bool) -> list[Any]:
    start = _START.search(body)
    if start is None:
        raise InvalidModelOutput("the answer contains no JSON")
    ended = body[: max(body.rfind("}"), body.rfind("]")) + 1][start.start() :]
    broken = body[start.start() :] if cut else ended or body[start.start() :]
    if len(broken) > MAX_REPAIRED:
        raise InvalidModelOutput("the answer contains no readable JSON")
    depths = accumulate(1 if sign in "{[" else -1 for sign in _BRACKET.findall(broken))
    if max(depths) > MAX_DEPTH:
        raise InvalidModelOutput("the answer contains no readable JSON")
    from json_repair import repair_json

    value = repair_json(broken, return_objects=True, skip_json_loads=True)
    repaired = _listed(_without_last(value) if cut else value)
    if not repaired:  # a valid empty list is an answer, a broken one is not
        raise InvalidModelOutput("the answer contains no readable JSON")
    return repaired


def _without_last(value: Any) -> Any:
    """Remove the part that was being written when the answer was cut: the last item, or the field after the list."""
    if isinstance(value, list):
        return value[:-1]
    if isinstance(value, dict) and value:
        *_, last = value
        if isinstance(value[last], list):
            return {**value, last: value[last][:-1]}
        return {key: field for key, field in value.items() if key != last} if _lists(value) else []
    return []


def _listed(value: Any) -> list[Any]:
    """Return the items of a list, of the list of objects in an object, or the object as the only item."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        raise InvalidModelOutput("the answer contains no JSON")
    lists = _lists(value)
    if lists:
        return lists[0]
    return [value] if value else []


def _lists(value: dict[str, Any]) -> list[list[Any]]:
    """Return the lists of objects in an object. An empty list counts only where it cannot be the field of an item."""
    lists = [field for field in value.values() if isinstance(field, list)]
    full = [items for items in lists if any(isinstance(item, dict) for item in items)]
    return full or [items for items in lists if not items and (len(value) == 1 or "id" not in value)]
