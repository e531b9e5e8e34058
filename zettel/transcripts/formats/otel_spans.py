"""OpenTelemetry's spans about generative models (OTLP as JSON) as steps of a trace.

The reader accepts messages in the current semantic conventions (``gen_ai.input.messages``), in the earlier ones (an
event for each message), and flattened as by OpenLLMetry (``gen_ai.prompt.0.content``) and OpenInference
(``llm.input_messages.0.message.content``).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

from zettel.model import Source
from zettel.transcripts import Rejected
from zettel.transcripts.parsing.chat_messages import is_message, unwrapped
from zettel.transcripts.parsing.content_blocks import parsed
from zettel.transcripts.parsing.json_values import as_dict, as_list, text_at, value_at
from zettel.transcripts.records import at_position, rejected

from .trace_steps import StepKind, TraceStep

_SESSIONS = ("gen_ai.conversation.id", "session.id", "traceloop.association.properties.session_id")
_MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_INPUT_MESSAGES = ("gen_ai.input.messages", "gen_ai.prompt", "llm.input_messages")
_OUTPUT_MESSAGES = ("gen_ai.output.messages", "gen_ai.completion", "llm.output_messages")
_OPERATIONS = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind")
_WHOLES = frozenset({"invoke_agent", "create_agent", "invoke_workflow", "agent", "chain", "workflow", "task"})
_TOOLS = frozenset({"execute_tool", "tool"})
_EVENT_ROLES = {"gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant", "gen_ai.tool.message": "tool",
                "gen_ai.choice": "assistant"}  # fmt: skip
_ARGUMENTS = ("gen_ai.tool.call.arguments", "input.value", "traceloop.entity.input")
_RESULTS = ("gen_ai.tool.call.result", "output.value", "traceloop.entity.output")
_STATUS: dict[Any, bool] = {1: False, "STATUS_CODE_OK": False, 2: True, "STATUS_CODE_ERROR": True}
"""If a span failed, by its status. An unset status reports neither."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def steps_in(spans: dict[str, Any], source: Source) -> Iterator[TraceStep | Rejected]:
    """Yield the steps of one of an export's ``resourceSpans``; other spans are skipped."""
    for scope in as_list(spans.get("scopeSpans")):
        for span in as_list(as_dict(scope).get("spans")):
            fields = as_dict(span)
            where = at_position(source, f"{source.position}/{fields.get('spanId')}")
            try:
                step = _step(fields, where)
            except ValueError as error:
                yield rejected(where, str(error))
            else:
                if step is not None:
                    yield step


def _step(span: dict[str, Any], source: Source) -> TraceStep | None:
    attributes = _attributes_of(span)
    operation = str(value_at(attributes, *_OPERATIONS, default="")).lower()
    inputs, outputs = _messages(attributes, _INPUT_MESSAGES), _messages(attributes, _OUTPUT_MESSAGES)
    for event in as_list(span.get("events")):
        inside = _attributes_of(as_dict(event))
        inputs += _messages(inside, _INPUT_MESSAGES)
        outputs += _messages(inside, _OUTPUT_MESSAGES)
        kind = str(as_dict(event).get("name"))
        if kind in _EVENT_ROLES:
            (outputs if kind == "gen_ai.choice" else inputs).append(_event_message(inside, _EVENT_ROLES[kind]))
    kind = StepKind.MODEL
    if operation in _TOOLS:
        kind, inputs, outputs = StepKind.TOOL, [_call(span, attributes)], _results(span, attributes)
    elif operation in _WHOLES:
        kind = StepKind.WHOLE
    if not inputs and not outputs:
        return None
    trace = str(span.get("traceId"))
    return TraceStep(
        kind=kind,
        id=str(span.get("spanId")),
        parent=str(span.get("parentSpanId")),
        trace=trace,
        session=str(next((attributes[key] for key in _SESSIONS if attributes.get(key)), trace)),
        began=_moment(span.get("startTimeUnixNano")),
        ended=_moment(span.get("endTimeUnixNano")),
        model=text_at(attributes, *_MODELS, blank=True),
        inputs=inputs,
        outputs=outputs,
        source=source,
        failed=_STATUS.get(as_dict(span.get("status")).get("code")),
    )


def _attributes_of(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a span or an event as a plain object."""
    pairs = (as_dict(item) for item in as_list(fields.get("attributes")))
    return {str(item.get("key")): _value(item.get("value")) for item in pairs}


def _value(attributes: Any) -> Any:
    """Unwrap a value of OTLP: ``{"intValue": "7"}`` is 7."""
    for kind, value in as_dict(attributes).items():
        inner = [as_dict(item) for item in as_list(as_dict(value).get("values"))]
        if kind == "arrayValue":
            return [_value(item) for item in inner]
        if kind == "kvlistValue":
            return {str(item.get("key")): _value(item.get("value")) for item in inner}
        if kind == "intValue" and isinstance(value, str):
            return int(value)
        return value
    return None


def _messages(attributes: dict[str, Any], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the messages in an attribute, as JSON or as values, or flattened over many attributes."""
    for name in names:
        values = parsed(attributes[name]) if name in attributes else _unflattened(attributes, name)
        messages = [as_dict(as_dict(item).get("message")) or item for item in as_list(values)]
        if messages:
            return [_plain(unwrapped(item)) for item in messages if is_message(item)]
    return []


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with parsed content, and with calls without OpenInference's wrapper."""
    blocks = parsed(message.get("content"))
    if not (isinstance(blocks, list) and blocks and all(isinstance(item, dict) and "type" in item for item in blocks)):
        blocks = message.get("content")
    if blocks is None:
        blocks = [_unwrapped_item(item, "message_content") for item in as_list(message.get("contents"))] or None
    calls = [_unwrapped_item(item, "tool_call") for item in as_list(parsed(message.get("tool_calls")))]
    changes = {"content": blocks, "tool_calls": calls or None}
    return {**message, **{key: value for key, value in changes.items() if value is not None}}


def _unwrapped_item(item: Any, wrapper: str) -> Any:
    return as_dict(item).get(wrapper, item)


def _unflattened(attributes: dict[str, Any], name: str) -> list[Any]:
    """Return ``{"x.0.role": "user", "x.0.content": "Hm."}`` as ``[{"role": "user", "content": "Hm."}]``."""
    root: dict[str, Any] = {}
    for key, value in attributes.items():
        if key.startswith(f"{name}."):
            *steps, last = key.removeprefix(f"{name}.").split(".")
            place = root
            for step in steps:
                inner = place.setdefault(step, {})
                place = inner if isinstance(inner, dict) else place
            place[last] = value
    return as_list(_listed(root))


def _listed(tree: Any) -> Any:
    """Return a tree with lists in place of objects whose keys are numbers."""
    if not isinstance(tree, dict):
        return tree
    if tree and all(key.isdecimal() for key in tree):
        return [_listed(tree[key]) for key in sorted(tree, key=int)]
    return {key: _listed(value) for key, value in tree.items()}


def _event_message(attributes: dict[str, Any], role: str) -> dict[str, Any]:
    inner = as_dict(parsed(attributes.get("message"))) or as_dict(parsed(attributes.get("gen_ai.event.content")))
    message = {**attributes, **inner, "role": role}
    if role == "tool":
        message["tool_call_id"] = message.pop("id", None)
    return _plain(message)


def _call(span: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    arguments = value_at(attributes, *_ARGUMENTS)
    call = {"name": _tool(span, attributes), "args": arguments, "id": attributes.get("gen_ai.tool.call.id")}
    return {"role": "assistant", "tool_calls": [call]}


def _results(span: dict[str, Any], attributes: dict[str, Any]) -> list[dict[str, Any]]:
    result = value_at(attributes, *_RESULTS)
    result = as_dict(span.get("status")).get("message") or None if result is None else result
    if result is None:
        return []
    call = attributes.get("gen_ai.tool.call.id")
    return [{"role": "tool", "name": _tool(span, attributes), "content": result, "tool_call_id": call}]


def _tool(span: dict[str, Any], attributes: dict[str, Any]) -> str:
    return str(attributes.get("gen_ai.tool.name") or attributes.get("tool.name") or span.get("name"))


def _moment(nanoseconds: Any) -> datetime | None:
    """Convert nanoseconds since 1970. Raises ``ValueError`` for anything else."""
    if nanoseconds in (None, "", "0", 0):
        return None
    try:
        return _EPOCH + timedelta(microseconds=int(nanoseconds) // 1000)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{str(nanoseconds)[:40]!r} is not a time in nanoseconds since 1970") from None
