"""The hook protocols of coding agents: their events, the fields of the input, and the shape of the answer.

Each agent passes JSON on stdin and reads JSON from stdout. The names are those of Claude Code 2.1, Codex 0.171, Gemini
CLI 0.61 and Cursor 3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from zettel.errors import InvalidInput
from zettel.transcripts.parsing.json_values import as_list, text_at


class Action(Enum):
    """The work of zettel at an event."""

    START = "start"
    """Return the memory of the project, for the context of a new session."""
    PROMPT = "prompt"
    """Return the memories that fit a prompt."""
    STORE = "store"
    """Store the turns of the transcript that are new."""
    TURN = "turn"
    """Store the turn in the input: the agent has no documented transcript."""


class Hook(NamedTuple):
    """One event of an agent."""

    event: str
    action: Action
    session: str | None
    folder: str | None
    """The folder of the project."""
    transcripts: tuple[str, ...] = ()
    """The paths of the session's transcript, and of a sub-agent's."""
    prompt: str = ""
    reply: str = ""
    turn: str | None = None
    """The agent's id of the turn."""


class Agent(NamedTuple):
    """A coding agent. ``format`` is the transcript format."""

    name: str
    title: str
    format: str | None
    events: Mapping[str, Action]

    def hook(self, event: str, input: Any, folder: str = "") -> Hook:
        """Read the input of an event; ``folder`` is the project's, if the agent states it. Raises ``InvalidInput``."""
        action = self.events.get(event)
        if action is None:
            raise InvalidInput(f"{self.title} has no event {event!r} for zettel: use {', '.join(self.events)}")
        if not isinstance(input, dict):
            raise InvalidInput(f"{event}: expected a JSON object on stdin")
        roots = [root for root in as_list(input.get("workspace_roots")) if isinstance(root, str)]
        paths = (text_at(input, key) for key in ("transcript_path", "agent_transcript_path"))
        return Hook(
            event, action,
            session=text_at(input, "session_id", "conversation_id"),
            folder=folder or (roots[0] if roots else text_at(input, "cwd")),
            transcripts=tuple(dict.fromkeys(path for path in paths if path)),
            prompt=text_at(input, "prompt") or "",
            reply=text_at(input, "text") or "",
            turn=text_at(input, "generation_id"),
        )  # fmt: skip

    def answer(self, event: str, context: str) -> str:
        """Return the text for stdout that adds ``context`` to the agent's context; "" if there is nothing to add."""
        if event == "beforeSubmitPrompt":
            return json.dumps({"continue": True})
        if not context:
            return ""
        if self is CURSOR:
            return json.dumps({"additional_context": context})
        return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": context}})


CLAUDE_CODE = Agent("claude-code", "Claude Code", "claude-code", {
    "SessionStart": Action.START, "UserPromptSubmit": Action.PROMPT, "Stop": Action.STORE,
    "SubagentStop": Action.STORE, "PreCompact": Action.STORE, "SessionEnd": Action.STORE,
})  # fmt: skip
CODEX = Agent("codex", "Codex", "codex", {
    "SessionStart": Action.START, "UserPromptSubmit": Action.PROMPT, "Stop": Action.STORE, "PreCompact": Action.STORE,
})  # fmt: skip
GEMINI_CLI = Agent("gemini-cli", "Gemini CLI", "gemini-cli", {
    "SessionStart": Action.START, "BeforeAgent": Action.PROMPT, "AfterAgent": Action.STORE,
    "PreCompress": Action.STORE, "SessionEnd": Action.STORE,
})  # fmt: skip
CURSOR = Agent("cursor", "Cursor", None, {
    "sessionStart": Action.START, "beforeSubmitPrompt": Action.TURN, "afterAgentResponse": Action.TURN,
})  # fmt: skip

AGENTS = {agent.name: agent for agent in (CLAUDE_CODE, CODEX, GEMINI_CLI, CURSOR)}


def agent_named(name: str) -> Agent:
    """Return the agent of that name. Raises ``InvalidInput``."""
    if name not in AGENTS:
        raise InvalidInput(f"zettel knows no coding agent {name!r}: use {', '.join(AGENTS)}")
    return AGENTS[name]
