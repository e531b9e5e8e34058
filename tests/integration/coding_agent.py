"""A scripted coding agent: it runs the hooks in its settings as the real program does, and writes its transcript."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

SETTINGS = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini-cli": ".gemini/settings.json",
    "cursor": ".cursor/hooks.json",
}
START = {"cursor": "sessionStart"}
PROMPT = {"gemini-cli": "BeforeAgent", "cursor": "beforeSubmitPrompt"}
STOP = {"gemini-cli": "AfterAgent", "cursor": "afterAgentResponse"}

_MOMENTS = (f"2026-11-06T{hour:02d}:{minute:02d}:00.000Z" for hour in range(24) for minute in range(60))
_ids = itertools.count(1)


class Answer(NamedTuple):
    """The result of a hook: the text for the context of the model, the seconds it took, exit status and stderr."""

    context: str
    seconds: float
    status: int
    err: str


class CodingAgent:
    """One session of an agent in a project."""

    def __init__(self, program: str, home: Path, project: Path, session: str) -> None:
        self.program, self.home, self.project, self.session = program, home, project, session
        self.transcript = home / "transcripts" / f"{program}-{session}.jsonl"
        self.transcript.parent.mkdir(exist_ok=True)
        self._turn = ""
        self._write_head()

    def start(self) -> str:
        """Begin the session; return what its hooks add to the context."""
        answer = self.run(START.get(self.program, "SessionStart"), source="startup")
        self._record_context(answer.context)
        return answer.context

    def prompt(self, text: str) -> str:
        """Submit a prompt; return what its hooks add to the context."""
        self._turn = f"turn-{next(_ids)}"
        context = self.recalled(text)
        self._record("user", text, context)
        return context

    def recalled(self, text: str) -> str:
        """Return what the hooks add to a prompt that the transcript does not contain."""
        return self.run(PROMPT.get(self.program, "UserPromptSubmit"), prompt=text).context

    def reply(self, text: str) -> None:
        """Answer, and end the turn."""
        self._record("assistant", text)
        extra = {"text": text} if self.program == "cursor" else {"stop_hook_active": False}
        self.run(STOP.get(self.program, "Stop"), **extra)

    def run(self, event: str, **fields: Any) -> Answer:
        """Run the hooks of an event as the agent does. Each must exit with 0 and print nothing else than JSON."""
        settings = json.loads((self.home / SETTINGS[self.program]).read_text())
        entries = settings["hooks"].get(event, [])
        commands = [run for entry in entries for run in entry.get("hooks", [entry])]
        assert commands, f"no hook for {event}"
        answers = [self._run(command["command"], event, fields) for command in commands]
        return answers[-1]

    def _run(self, command: str, event: str, fields: dict[str, Any]) -> Answer:
        if self.program == "cursor":
            base: dict[str, Any] = {
                "conversation_id": self.session, "generation_id": self._turn, "workspace_roots": [str(self.project)],
                "cursor_version": "3.24.18", "transcript_path": None,
            }  # fmt: skip
        else:
            base = {"session_id": self.session, "transcript_path": str(self.transcript), "cwd": str(self.project)}
        data = json.dumps({**base, "hook_event_name": event, **fields}).encode()
        began = time.perf_counter()
        done = subprocess.run(
            ["sh", "-c", command], input=data, capture_output=True, cwd=self.project, timeout=60,
            env={**os.environ, "HOME": str(self.home)}, check=False,
        )  # fmt: skip
        seconds = time.perf_counter() - began
        assert done.returncode == 0, done.stderr
        return Answer(self._context(event, done.stdout), seconds, done.returncode, done.stderr.decode())

    def _context(self, event: str, out: bytes) -> str:
        if not out.strip():
            return ""
        answer = json.loads(out)
        if self.program == "cursor":
            assert answer.keys() <= {"continue", "additional_context"}
            return str(answer.get("additional_context", ""))
        assert answer.keys() == {"hookSpecificOutput"}
        assert answer["hookSpecificOutput"]["hookEventName"] == event
        return str(answer["hookSpecificOutput"]["additionalContext"])

    def _write_head(self) -> None:
        if self.program == "codex":
            meta = {"id": self.session, "timestamp": next(_MOMENTS), "cwd": str(self.project), "source": "cli"}
            self._line({"timestamp": next(_MOMENTS), "type": "session_meta", "payload": meta})
        elif self.program == "gemini-cli":
            self._line({"sessionId": self.session, "projectHash": "ab12", "startTime": next(_MOMENTS), "kind": "main"})

    def _record_context(self, context: str) -> None:
        if context and self.program == "claude-code":
            attachment = {"type": "hook_additional_context", "content": [context], "hookEvent": "SessionStart"}
            self._claude("attachment", attachment=attachment)
        elif context and self.program == "codex":
            self._codex("developer", context)
        elif context and self.program == "gemini-cli":
            self._gemini("user", [{"text": f"<hook_context>{context}</hook_context>"}])

    def _record(self, role: str, text: str, context: str = "") -> None:
        if self.program == "claude-code":
            content = text if role == "user" else [{"type": "text", "text": text}]
            self._claude(role, message={"role": role, "content": content})
            if context:
                attachment = {"type": "hook_additional_context", "content": [context], "hookEvent": "UserPromptSubmit"}
                self._claude("attachment", attachment=attachment)
                # Older versions add it to the prompt.
                reminder = f"<system-reminder>\nUserPromptSubmit hook additional context: {context}\n</system-reminder>"
                self._claude("user", message={"role": "user", "content": reminder})
        elif self.program == "codex":
            self._codex(role, text)
            if context:
                self._codex("developer", context)
        elif self.program == "gemini-cli":
            parts = [{"text": text}, *([{"text": f"<hook_context>{context}</hook_context>"}] if context else [])]
            self._gemini("user" if role == "user" else "gemini", parts)

    def _claude(self, kind: str, **fields: Any) -> None:
        base = {"parentUuid": None, "isSidechain": False, "cwd": str(self.project), "sessionId": self.session}
        self._line({**base, "type": kind, "uuid": f"u-{next(_ids)}", "timestamp": next(_MOMENTS), **fields})

    def _codex(self, role: str, text: str) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        self._line({"timestamp": next(_MOMENTS), "type": "response_item", "payload": item})

    def _gemini(self, kind: str, parts: list[dict[str, Any]]) -> None:
        self._line({"id": f"g-{next(_ids)}", "timestamp": next(_MOMENTS), "type": kind, "content": parts})

    def _line(self, value: dict[str, Any]) -> None:
        with self.transcript.open("a", encoding="utf-8") as file:
            file.write(json.dumps(value) + "\n")


@contextmanager
def hook_services(home: Path) -> Iterator[Path]:
    """End the services that hooks with this home folder start."""
    try:
        yield home
    finally:
        end_services(home)


def end_services(home: Path, number: int = signal.SIGKILL) -> None:
    """End the hook services of a home folder, and wait until they have ended."""
    for lock in (home / ".zettel" / "hooks").glob("*.lock"):
        pid = int(lock.read_text() or 0)
        with suppress(ProcessLookupError):
            if pid and is_service(pid):
                os.kill(pid, number)
        until = time.monotonic() + 20
        while pid and is_service(pid) and time.monotonic() < until:
            time.sleep(0.02)


def is_service(pid: int) -> bool:
    try:
        return b"coding_agents.service" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
