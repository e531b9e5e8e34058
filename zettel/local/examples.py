"""Past episodes in which an agent succeeded at a task, as examples for the next time.

Paper: Zheng et al. 2024, "Synapse: Trajectory-as-Exemplar Prompting with Memory" (arXiv:2306.07863). An episode begins
with a message of a user, the task, and contains the turns after it up to the next task. It succeeded if the last
outcome in it is a success: that of a tool, or one that a message reports ("That worked!").
"""

from __future__ import annotations

from collections.abc import Sequence

from zettel.evolve.lessons import call_text, outcomes
from zettel.llm.prompt_lines import clip
from zettel.model import EventRecord, Example, Kind, Note, event_text
from zettel.search.session_context import Turn

MAX_TASK = 400
"""Characters of a task."""
MAX_STEP = 200
"""Characters of a step; longer ones are cut."""
MAX_STEPS = 20
"""Steps of an episode, the last ones: they led to the success."""
MIN_SCORE = 0.1
"""The lowest score of a task that is similar."""
CANDIDATES = 60
"""Messages of users that are searched for each call."""


def example_of(turns: Sequence[Turn], notes: Sequence[Note], task: Note, score: float) -> Example | None:
    """Return the episode that begins with a task; None unless it succeeded.

    ``turns`` are those of its session, and ``notes`` their notes.
    """
    own = [note for note in notes if note.kind is Kind.EPISODIC and not note.part]
    note_of = {id: note for note in own for id in note.event_ids}
    events = [turn.event for turn in turns]
    start = next((at for at, event in enumerate(events) if event.event_id in task.event_ids), None)
    if start is None:
        return None
    steps: list[str] = []
    succeeded: bool | None = None
    for at in range(start + 1, len(events)):
        event, note = events[at], note_of.get(events[at].event_id)
        before = [(event.event_id, event_text(event)) for event in events[max(start, at - 2) : at]]
        if event.role == "tool":
            before = [(events[start].event_id, event_text(events[start])), before[-1]]
        reported = outcomes(note, before) if note is not None else []
        if event.role == "user" and not reported:
            break
        if reported:
            succeeded = reported[-1].well
        steps.append(_step(event))
    if not succeeded:
        return None
    return Example(
        task=clip(event_text(events[start]), MAX_TASK),
        steps=tuple(steps[-MAX_STEPS:]),
        session=task.session or "",
        note=task.id,
        score=score,
    )


def _step(event: EventRecord) -> str:
    """Return a turn as one line; a message with calls as these calls."""
    speaker = event.speaker or event.role or ""
    calls = event.payload.get("calls") if isinstance(event.payload, dict) and not event.content.strip() else None
    named = [str(call.get("tool")) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    turn = event_text(event)
    text = "; ".join(call_text(name, None, turn) for name in dict.fromkeys(named)) if named else turn
    return f"{speaker}: {clip(text, MAX_STEP)}" if speaker else clip(text, MAX_STEP)
