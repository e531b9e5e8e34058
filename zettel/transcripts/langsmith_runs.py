"""LangSmith's runs as steps of a trace: calls of models and tools, chains and agents, nested or in a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zettel.model import Source

from . import Rejected
from .chat_messages import is_message, unwrapped
from .content_blocks import as_dict, as_list, parsed
from .moments import any_time
from .records import rejected
from .trace_steps import Step, StepKind

_KINDS = {"llm": StepKind.MODEL, "tool": StepKind.TOOL}
_THREADS = ("session_id", "thread_id", "conversation_id")
"""Keys of the metadata that name a thread. The run's own session_id is the project."""

_MODELS = ("ls_model_name", "model", "model_name")
_GIVEN = ("chat_history", "history", "messages", "input", "question", "query", "prompts", "prompt")
_SAID = ("messages", "message", "choices", "generations", "output", "answer", "response", "text", "content", "result")


def steps_in(run: dict[str, Any], source: Source) -> Iterator[Step | Rejected]:
    """The run and those inside it."""
    try:
        step = _step(run, source)
    except ValueError as error:
        yield rejected(source, str(error))
    else:
        if step is not None:
            yield step
    for child in as_list(run.get("child_runs")):
        if isinstance(child, dict):
            yield from steps_in(child, source)


def _step(run: dict[str, Any], source: Source) -> Step | None:
    """None for a run that says nothing, or that is neither at the root nor of a model or a tool."""
    kind = _KINDS.get(str(run.get("run_type")), StepKind.WHOLE)
    if kind is StepKind.WHOLE and run.get("parent_run_id"):
        return None
    given, said = as_dict(run.get("inputs")), as_dict(run.get("outputs"))
    extra = as_dict(run.get("extra"))
    metadata = as_dict(extra.get("metadata"))
    asked = messages_in(given, _GIVEN, "user", all_of_them=True)
    answers = messages_in(said, _SAID, "assistant")
    if kind is StepKind.TOOL:
        asked, answers = [_call(run, given)], _answers(run, said)
    if not asked and not answers:
        return None
    id = str(run.get("id"))
    trace = str(run.get("trace_id") or id)
    began = any_time(run.get("start_time"))
    return Step(
        kind=kind,
        id=id,
        parent=str(run.get("parent_run_id")),
        trace=trace,
        session=str(next((metadata[key] for key in _THREADS if metadata.get(key)), trace)),
        order=began.timestamp() if began else 0.0,
        began=began,
        ended=any_time(run.get("end_time")),
        model=_model({**as_dict(extra.get("invocation_params")), **metadata}),
        given=asked,
        said=answers,
        source=source,
    )


def messages_in(value: Any, names: tuple[str, ...], role: str, all_of_them: bool = False) -> list[dict[str, Any]]:
    """Messages, wherever they are in a run's inputs or outputs; a bare text is one of ``role``.

    Of an object the values called as in ``names`` are looked at: ``all_of_them``, or the first that says something.
    """
    if isinstance(value, str):
        return [{"role": role, "content": value}] if value.strip() else []
    if isinstance(value, list):
        return [message for one in value for message in messages_in(one, names, role, all_of_them)]
    if is_message(value):
        return [unwrapped(value)]
    fields = as_dict(value)
    found: list[dict[str, Any]] = []
    for name in names if any(name in fields for name in names) else list(fields)[:1]:
        if name in fields and (all_of_them or not found):
            found += messages_in(fields[name], names, role, all_of_them)
    return found


def _call(run: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    told = parsed(given["input"]) if given.keys() == {"input"} else given
    return {"role": "assistant", "tool_calls": [{"name": run.get("name"), "args": told}]}


def _answers(run: dict[str, Any], said: dict[str, Any]) -> list[dict[str, Any]]:
    """What a tool answered, or the first line of its error."""
    answer: Any = said.get("output", said) or str(run.get("error") or "").strip().partition("\n")[0]
    if is_message(answer):
        return [{"name": run.get("name"), **unwrapped(answer), "role": "tool"}]
    return [{"role": "tool", "name": run.get("name"), "content": answer}] if answer else []


def _model(told: dict[str, Any]) -> str | None:
    return next((told[key] for key in _MODELS if isinstance(told.get(key), str)), None)
