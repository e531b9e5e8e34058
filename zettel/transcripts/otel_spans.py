"""OpenTelemetry's spans about generative models (OTLP as JSON) as steps of a trace.

Messages are found as the semantic conventions put them today (``gen_ai.input.messages``), as they did before (an event
for each message), and as OpenLLMetry (``gen_ai.prompt.0.content``) and OpenInference
(``llm.input_messages.0.message.content``) flatten them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

from zettel.model import Source

from . import Rejected
from .chat_messages import is_message, unwrapped
from .content_blocks import as_dict, as_list, parsed
from .records import inside, rejected
from .trace_steps import Step, StepKind

_SESSIONS = ("gen_ai.conversation.id", "session.id", "traceloop.association.properties.session_id")
_MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_GIVEN = ("gen_ai.input.messages", "gen_ai.prompt", "llm.input_messages")
_SAID = ("gen_ai.output.messages", "gen_ai.completion", "llm.output_messages")
_OPERATIONS = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind")
_WHOLES = frozenset({"invoke_agent", "create_agent", "invoke_workflow", "agent", "chain", "workflow", "task"})
_TOOLS = frozenset({"execute_tool", "tool"})
_EVENT_ROLES = {"gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant", "gen_ai.tool.message": "tool",
                "gen_ai.choice": "assistant"}  # fmt: skip
_INPUTS = ("gen_ai.tool.call.arguments", "input.value", "traceloop.entity.input")
_OUTPUTS = ("gen_ai.tool.call.result", "output.value", "traceloop.entity.output")
_PAST = datetime(1970, 1, 1, tzinfo=timezone.utc)


def steps_in(spans: dict[str, Any], source: Source) -> Iterator[Step | Rejected]:
    """The steps of one of an export's ``resourceSpans``; spans of other work are passed over."""
    for scope in as_list(spans.get("scopeSpans")):
        for span in as_list(as_dict(scope).get("spans")):
            fields = as_dict(span)
            where = inside(source, f"{source.position}/{fields.get('spanId')}")
            try:
                step = _step(fields, where)
            except ValueError as error:
                yield rejected(where, str(error))
            else:
                if step is not None:
                    yield step


def _step(span: dict[str, Any], source: Source) -> Step | None:
    told = attributes_of(span)
    operation = str(next((told[key] for key in _OPERATIONS if key in told), "")).lower()
    given, said = _messages(told, _GIVEN), _messages(told, _SAID)
    for event in as_list(span.get("events")):
        inside = attributes_of(as_dict(event))
        given += _messages(inside, _GIVEN)
        said += _messages(inside, _SAID)
        kind = str(as_dict(event).get("name"))
        if kind in _EVENT_ROLES:
            (said if kind == "gen_ai.choice" else given).append(_event_message(inside, _EVENT_ROLES[kind]))
    kind = StepKind.MODEL
    if operation in _TOOLS:
        kind, given, said = StepKind.TOOL, [_call(span, told)], _answers(span, told)
    elif operation in _WHOLES:
        kind = StepKind.WHOLE
    if not given and not said:
        return None
    trace, began = str(span.get("traceId")), _moment(span.get("startTimeUnixNano"))
    return Step(
        kind=kind,
        id=str(span.get("spanId")),
        parent=str(span.get("parentSpanId")),
        trace=trace,
        session=str(next((told[key] for key in _SESSIONS if told.get(key)), trace)),
        order=began.timestamp() if began else 0.0,
        began=began,
        ended=_moment(span.get("endTimeUnixNano")),
        model=next((told[key] for key in _MODELS if isinstance(told.get(key), str)), None),
        given=given,
        said=said,
        source=source,
    )


def attributes_of(fields: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a span or an event as a plain object."""
    pairs = (as_dict(one) for one in as_list(fields.get("attributes")))
    return {str(one.get("key")): _value(one.get("value")) for one in pairs}


def _value(told: Any) -> Any:
    """OTLP's wrapped values: ``{"intValue": "7"}`` is 7."""
    for kind, value in as_dict(told).items():
        inner = [as_dict(one) for one in as_list(as_dict(value).get("values"))]
        if kind == "arrayValue":
            return [_value(one) for one in inner]
        if kind == "kvlistValue":
            return {str(one.get("key")): _value(one.get("value")) for one in inner}
        if kind == "intValue" and isinstance(value, str):
            return int(value)
        return value
    return None


def _messages(told: dict[str, Any], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Messages that stand in an attribute, as JSON or as values, or are flattened over many."""
    for name in names:
        found = parsed(told[name]) if name in told else _unflattened(told, name)
        messages = [as_dict(as_dict(one).get("message")) or one for one in as_list(found)]
        if messages:
            return [_plain(unwrapped(one)) for one in messages if is_message(one)]
    return []


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    """Contents that are JSON in a text are read, and calls are freed of OpenInference's wrapping."""
    blocks = parsed(message.get("content"))
    if not (isinstance(blocks, list) and blocks and all(isinstance(one, dict) and "type" in one for one in blocks)):
        blocks = message.get("content")
    if blocks is None:
        blocks = [_freed(one, "message_content") for one in as_list(message.get("contents"))] or None
    calls = [_freed(one, "tool_call") for one in as_list(parsed(message.get("tool_calls")))]
    return {
        **message,
        **({"content": blocks} if blocks is not None else {}),
        **({"tool_calls": calls} if calls else {}),
    }


def _freed(one: Any, wrapping: str) -> Any:
    return as_dict(one).get(wrapping, one)


def _unflattened(told: dict[str, Any], name: str) -> list[Any]:
    """``{"x.0.role": "user", "x.0.content": "Hm."}`` as ``[{"role": "user", "content": "Hm."}]``."""
    root: dict[str, Any] = {}
    for key, value in told.items():
        if key.startswith(f"{name}."):
            *steps, last = key.removeprefix(f"{name}.").split(".")
            place = root
            for step in steps:
                inner = place.setdefault(step, {})
                place = inner if isinstance(inner, dict) else place
            place[last] = value
    return as_list(_listed(root))


def _listed(tree: Any) -> Any:
    """Objects whose keys are numbers as lists in their order."""
    if not isinstance(tree, dict):
        return tree
    if tree and all(key.isdecimal() for key in tree):
        return [_listed(tree[key]) for key in sorted(tree, key=int)]
    return {key: _listed(value) for key, value in tree.items()}


def _event_message(told: dict[str, Any], role: str) -> dict[str, Any]:
    inner = as_dict(parsed(told.get("message"))) or as_dict(parsed(told.get("gen_ai.event.content")))
    message = {**told, **inner, "role": role}
    if role == "tool":
        message["tool_call_id"] = message.pop("id", None)
    return _plain(message)


def _call(span: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    given = next((told[key] for key in _INPUTS if key in told), None)
    call = {"name": _tool(span, told), "args": given, "id": told.get("gen_ai.tool.call.id")}
    return {"role": "assistant", "tool_calls": [call]}


def _answers(span: dict[str, Any], told: dict[str, Any]) -> list[dict[str, Any]]:
    said = next((told[key] for key in _OUTPUTS if key in told), None)
    if said is None:
        return []
    call = told.get("gen_ai.tool.call.id")
    return [{"role": "tool", "name": _tool(span, told), "content": said, "tool_call_id": call}]


def _tool(span: dict[str, Any], told: dict[str, Any]) -> str:
    return str(told.get("gen_ai.tool.name") or told.get("tool.name") or span.get("name"))


def _moment(nanoseconds: Any) -> datetime | None:
    """``ValueError`` for what is no number of nanoseconds since 1970."""
    if nanoseconds in (None, "", "0", 0):
        return None
    try:
        return _PAST + timedelta(microseconds=int(nanoseconds) // 1000)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{str(nanoseconds)[:40]!r} is no time in nanoseconds since 1970") from None
