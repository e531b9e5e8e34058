"""A chat completion server that fails in every way that models and their services do.

A Python callable makes its answers, and a plan from a seed or a list decides its faults.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, TypeAlias

from zettel.bench.completions import CompletionServer, Reply, completion, problem
from zettel.bench.replay import Damage, damage

MAX_REQUESTS = 1000
"""Number of latest requests that are stored; all are counted."""


class Fault(str, Enum):
    """Faults of one request."""

    # the service
    UNAUTHORIZED = "401"
    FORBIDDEN = "403"
    NOT_FOUND = "404"
    RATE_LIMITED = "429"
    BROKEN = "500"
    OVERLOADED = "503"
    HANGS = "no answer in time"
    BREAKS_OFF = "connection cut during the answer"
    # the answer as a whole
    CUT_OFF = "ends at max_tokens"
    EMPTY = "empty text"
    NO_CHOICE = "no choices"
    REFUSAL = "refuses"
    RUBBISH = "invalid JSON"
    ECHO = "repeats the question"
    # its items
    WRONG_ID = "an id that is not in the request"
    NO_ID = "an item without id"
    DOUBLED_ID = "two items with one id"
    ONE_MISSING = "all items but one"
    OBEDIENT = "follows an instruction in an event"


STATUS = {fault: int(fault.value) for fault in Fault if fault.value.isdigit()}
ITEMS = (Fault.WRONG_ID, Fault.NO_ID, Fault.DOUBLED_ID, Fault.ONE_MISSING, Fault.OBEDIENT)

Plan: TypeAlias = Callable[[], "Fault | None"]


def random_plan(seed: int, share: float, faults: Sequence[Fault] = tuple(Fault)) -> Plan:
    """Return a plan in which a ``share`` of all requests fails with one of these faults."""
    random_ = random.Random(seed)
    return lambda: random_.choice(faults) if random_.random() < share else None


def first(faults: Iterable[Fault | None]) -> Plan:
    """Return a plan with these faults in order, then none."""
    remaining = iter(tuple(faults))
    return lambda: next(remaining, None)


def damaged(text: str, fault: Fault, random_: random.Random, id_key: str = "id") -> str:
    """Return an answer with one of the faults in ITEMS, in its list of objects or in itself if it is such a list."""
    answer = json.loads(text)
    lists = [answer] if isinstance(answer, list) else [value for value in answer.values() if isinstance(value, list)]
    items = next((value for value in lists if value and isinstance(value[0], dict)), [])
    if not items:
        return text
    for place in range(len(items)) if fault is Fault.OBEDIENT else [random_.randrange(len(items))]:
        damage(items, place, Damage[fault.name], id_key)
    return json.dumps(answer)


class ModelServer(CompletionServer):
    """A ``CompletionServer`` with faults. A context manager.

    ``hang``: seconds, longer than the client's timeout. ``retry_after``: the header of a 429, if any. ``refuses``:
    parameters that lead to a 400 that names them.
    """

    def __init__(
        self,
        reply: Reply,
        plan: Plan = lambda: None,
        *,
        hang: float = 30.0,
        retry_after: str | None = "0.02",
        refuses: Iterable[str] = (),
        wait: float = 0.0,
        seed: int = 0,
        id_key: str = "id",
    ) -> None:
        super().__init__(reply, wait)
        self.plan, self.hang, self.retry_after = plan, hang, retry_after
        self.refuses, self.id_key = frozenset(refuses), id_key
        self.faults: Counter[Fault] = Counter()
        self.requests: deque[dict[str, Any]] = deque(maxlen=MAX_REQUESTS)
        self.most_at_once = 0
        self._active = 0
        self._random = random.Random(seed)

    async def serve(self, writer: asyncio.StreamWriter, request: dict[str, Any]) -> bool:
        self.requests.append(request)
        self._active += 1
        self.most_at_once = max(self.most_at_once, self._active)
        try:
            return await super().serve(writer, request)
        finally:
            self._active -= 1

    async def answer(self, writer: asyncio.StreamWriter, request: dict[str, Any]) -> bool:
        unsupported = self.refuses & request.keys()
        if unsupported:
            await self.send(writer, 400, problem(f"Invalid parameter: '{min(unsupported)}' is not supported here"))
            return True
        fault = self.plan()
        if fault is not None:
            self.faults[fault] += 1
        if fault in STATUS:
            headers = {"Retry-After": self.retry_after} if fault is Fault.RATE_LIMITED and self.retry_after else {}
            quoted = request["messages"][-1]["content"]  # as in the errors of some services
            await self.send(writer, STATUS[fault], problem(f"cannot answer: {quoted}"), headers)
        elif fault is Fault.HANGS:
            await asyncio.sleep(self.hang)
        elif fault is Fault.BREAKS_OFF:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n{")
            await writer.drain()
        elif fault is Fault.REFUSAL:
            await self.send(writer, 200, completion(request, "", refusal="I cannot help with that."))
        elif fault is Fault.NO_CHOICE:
            await self.send(writer, 200, {**completion(request, ""), "choices": []})
        else:
            finish = "length" if fault is Fault.CUT_OFF else "stop"
            await self.send(writer, 200, completion(request, self.reply_text(request, fault), finish))
        return fault not in (Fault.HANGS, Fault.BREAKS_OFF)

    def reply_text(self, request: dict[str, Any], fault: Fault | None) -> str:
        """Return the text of an answer."""
        if fault is Fault.EMPTY:
            return ""
        if fault is Fault.RUBBISH:
            return self._random.choice(
                ["Sure! Here are the notes you asked for.", "{{{,]", "null", "\ufffd" * 40, "[[[["]
            )
        if fault is Fault.ECHO:
            return str(request["messages"][-1]["content"])
        text = self.reply(request)
        if fault is Fault.CUT_OFF:
            return text[: self._random.randrange(len(text) + 1)]
        return damaged(text, fault, self._random, self.id_key) if fault in ITEMS else text
