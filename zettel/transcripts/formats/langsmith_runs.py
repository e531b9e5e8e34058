"""LangSmith's runs as steps of a trace: calls of models and tools, chains and agents, nested or in a list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zettel.model import Source
from zettel.transcripts import Rejected
from zettel.transcripts.parsing.chat_messages import is_message, unwrapped
from zettel.transcripts.parsing.content_blocks import parsed
from zettel.transcripts.parsing.json_values import as_dict, dicts_in, text_at
from zettel.transcripts.parsing.timestamps import any_time
from zettel.transcripts.records import rejected

from .trace_steps import StepKind, TraceStep

_KINDS = {"llm": StepKind.MODEL, "tool": StepKind.TOOL}
_THREADS = ("session_id", "thread_id", "conversation_id")
"""Keys of the metadata that name a thread. The run's own session_id is the project."""

_MODELS = ("ls_model_name", "model", "model_name")
_INPUT_KEYS = ("chat_history", "history", "messages", "input", "question", "query", "prompts", "prompt")
_OUTPUT_KEYS = (
    "messages",
    "message",
    "choices",
    "generations",
    "output",
    "answer",
    "response",
    "text",
    "content",
    "result",
)


def steps_in(run: dict[str, Any], source: Source) -> Iterator[TraceStep | Rejected]:
    """Yield the steps of a run and its child runs."""
    try:
        step = _step(run, source)
    except ValueError as error:
        yield rejected(source, str(error))
    else:
        if step is not None:
            yield step
    for child in dicts_in(run.get("child_runs")):
        yield from steps_in(child, source)


def _step(run: dict[str, Any], source: Source) -> TraceStep | None:
    """Return the step; None for a run without messages, and for a nested chain or agent."""
    kind = _KINDS.get(str(run.get("run_type")), StepKind.WHOLE)
    if kind is StepKind.WHOLE and run.get("parent_run_id"):
        return None
    inputs, outputs = as_dict(run.get("inputs")), as_dict(run.get("outputs"))
    extra = as_dict(run.get("extra"))
    metadata = as_dict(extra.get("metadata"))
    messages = _messages_in(inputs, _INPUT_KEYS, "user", all_keys=True)
    answers = _messages_in(outputs, _OUTPUT_KEYS, "assistant")
    if kind is StepKind.TOOL:
        messages, answers = [_call(run, inputs)], _results(run, outputs)
    if not messages and not answers:
        return None
    id = str(run.get("id"))
    trace = str(run.get("trace_id") or id)
    return TraceStep(
        kind=kind,
        id=id,
        parent=str(run.get("parent_run_id")),
        trace=trace,
        session=str(next((metadata[key] for key in _THREADS if metadata.get(key)), trace)),
        began=any_time(run.get("start_time")),
        ended=any_time(run.get("end_time")),
        model=text_at({**as_dict(extra.get("invocation_params")), **metadata}, *_MODELS, blank=True),
        inputs=messages,
        outputs=answers,
        source=source,
        failed=True if run.get("error") else {"error": True, "success": False}.get(str(run.get("status"))),
    )


def _messages_in(value: Any, keys: tuple[str, ...], role: str, all_keys: bool = False) -> list[dict[str, Any]]:
    """Return the messages at any depth of a run's inputs or outputs; a bare text has the ``role``.

    In an object the values of ``keys`` count: with ``all_keys`` all of them, else the first with messages.
    """
    if isinstance(value, str):
        return [{"role": role, "content": value}] if value.strip() else []
    if isinstance(value, list):
        return [message for item in value for message in _messages_in(item, keys, role, all_keys)]
    if is_message(value):
        return [unwrapped(value)]
    fields = as_dict(value)
    messages: list[dict[str, Any]] = []
    for key in [key for key in keys if key in fields] or list(fields)[:1]:
        if all_keys or not messages:
            messages += _messages_in(fields[key], keys, role, all_keys)
    return messages


def _call(run: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
    arguments = parsed(inputs["input"]) if inputs.keys() == {"input"} else inputs
    return {"role": "assistant", "tool_calls": [{"name": run.get("name"), "args": arguments}]}


def _results(run: dict[str, Any], outputs: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the result of a tool, or the first line of its error."""
    answer: Any = outputs.get("output", outputs) or str(run.get("error") or "").strip().partition("\n")[0]
    if is_message(answer):
        return [{"name": run.get("name"), **unwrapped(answer), "role": "tool"}]
    return [{"role": "tool", "name": run.get("name"), "content": answer}] if answer else []
