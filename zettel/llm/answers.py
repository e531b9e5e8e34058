"""From what a model said to the items in it. Whether an item is valid is for whoever asked to see, one by one."""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any

from zettel.errors import ModelUnusable

_START = re.compile(r'[{\[]\s*["{\[\]}]')
"""Where JSON may begin in between words: a bracket, and what can follow it."""
_FENCE = re.compile(r"```(?:\w*\n)?(.*?)(?:```|\Z)", re.DOTALL)
_BRACKET = re.compile(r"[{}\[\]]")
DEEPEST = 50
"""Brackets open at once, those in texts included. To repair what goes deeper takes seconds, and no answer does."""
_THOUGHT_ENDS = "</think>"
"""What some models end their thinking aloud with."""


def items(text: str, cut: bool = False) -> list[Any]:
    """The items of an answer: of the object that the schema asks for its list, or a bare list, or one bare item.

    Strict JSON first, with or without words and code fences around it, then one repair. An answer that was ``cut``
    loses its last item, unless it is whole nevertheless. Raises ``ModelUnusable`` where no JSON is to be found.
    """
    told = text.rpartition(_THOUGHT_ENDS)[2].strip()
    try:
        return _listed(json.loads(told))
    except (ValueError, RecursionError):
        pass
    fenced = _FENCE.search(told)
    body = fenced[1] if fenced and _START.search(fenced[1]) else told
    found = _in_between(body)
    if found is not None:
        return _listed(found[0] if len(found) == 1 else found)
    return _repaired(body, cut)


def _in_between(body: str) -> list[Any] | None:
    """All JSON values between the words of a text, for some models answer line by line; None: one is broken."""
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
        raise ModelUnusable("the answer holds no JSON")
    ended = body[: max(body.rfind("}"), body.rfind("]")) + 1][start.start() :]
    broken = body[start.start() :] if cut else ended or body[start.start() :]
    depths = accumulate(1 if sign in "{[" else -1 for sign in _BRACKET.findall(broken))
    if max(depths) > DEEPEST:
        raise ModelUnusable("the answer holds no JSON that can be read")
    from json_repair import repair_json

    value = repair_json(broken, return_objects=True, skip_json_loads=True)
    found = _listed(_without_last(value) if cut else value)
    if not found:  # an empty list in good order is an answer, the ruins of one are not
        raise ModelUnusable("the answer holds no JSON that can be read")
    return found


def _without_last(value: Any) -> Any:
    """Without what was being written when the answer was cut: the last item, or what came after the list."""
    if isinstance(value, list):
        return value[:-1]
    if isinstance(value, dict) and value:
        *_, last = value
        if isinstance(value[last], list):
            return {**value, last: value[last][:-1]}
        return {key: held for key, held in value.items() if key != last} if _lists(value) else []
    return []


def _listed(value: Any) -> list[Any]:
    """The items of a value: those of a list, of the list of objects in an object, or an object that is one itself."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        raise ModelUnusable("the answer holds no JSON")
    lists = _lists(value)
    if lists:
        return lists[0]
    return [value] if value else []


def _lists(value: dict[str, Any]) -> list[list[Any]]:
    """The lists of objects in an object. An empty one counts where it stands alone: elsewhere it is an item's field."""
    lists = [held for held in value.values() if isinstance(held, list)]
    full = [held for held in lists if any(isinstance(item, dict) for item in held)]
    return full or [held for held in lists if not held and (len(value) == 1 or "id" not in value)]
