"""``--format auto``: only its own format recognises each sample file."""

from __future__ import annotations

from pathlib import Path

import pytest

from zettel import Memory
from zettel.transcripts import all_formats, choose

SAMPLES = Path(__file__).parents[1] / "data" / "transcripts"

FORMAT_OF = {
    "chatgpt.json": "chatgpt",
    "claude.json": "claude",
    "claude-code.jsonl": "claude-code",
    "codex-rollout.jsonl": "codex",
    "codex-rollout-old.jsonl": "codex",
    "codex-rollout-subagent.jsonl": "codex",
    "gemini-session.json": "gemini-cli",
    "gemini-session.jsonl": "gemini-cli",
    "events.jsonl": "jsonl",
    "locomo.json": "locomo",
    "longmemeval.json": "longmemeval",
    "messages-anthropic.json": "messages",
    "messages-lines.jsonl": "messages",
    "messages-openai.jsonl": "messages",
    "messages-thread.jsonl": "messages",
    "plain.txt": "plain",
    "traces-langsmith.jsonl": "traces",
    "traces-otel.jsonl": "traces",
    "amem.json": "amem",
    "amem-chroma": "amem",
    "mem0.json": "mem0",
    "mem0-page.json": "mem0",
    "graphiti.json": "graphiti",
    "graphiti-apoc.json": "graphiti",
    "server-memory.jsonl": "server-memory",
    "csv-chat.csv": "csv",
    "csv-protokoll.csv": "csv",
    "csv-tickets.tsv": "csv",
    "parquet-dock.parquet": "parquet",
    "markdown-vault": "markdown",
    "markdown.md": "markdown",
    "WhatsApp Chat - Rowing Club.zip": "whatsapp",
    "WhatsApp Chat mit Winterlager.txt": "whatsapp",
    "slack": "slack",
    "telegram": "telegram",
    "telegram-chat.json": "telegram",
    "discord-workshop.json": "discord",
    "discord-thread.json": "discord",
    "discord.json": "discord",
    "discord-package": "discord",
    "mail.mbox": "mbox",
    "mail.eml": "mbox",
    "talk.srt": "subtitles",
    "GMT20240108-090000_Recording.transcript.vtt": "subtitles",
    "teams.vtt": "subtitles",
    "teams.txt": "subtitles",
    "zoom-captions.txt": "subtitles",
}
"""The samples, one line for each file or folder, with the format that `auto` finds."""

# These formats are recognised by their first record; the others by field names of their own.
GENERAL = {"jsonl", "plain"}


@pytest.mark.parametrize("name", FORMAT_OF)
def test_auto_selects_the_format(name: str) -> None:
    assert choose(SAMPLES / name).name == FORMAT_OF[name]


def test_every_sample_is_tested() -> None:
    assert {path.name for path in SAMPLES.iterdir()} == FORMAT_OF.keys()


@pytest.mark.parametrize("name", FORMAT_OF)
def test_no_other_specific_format_accepts_a_sample(name: str) -> None:
    path = SAMPLES / name
    head = b"" if path.is_dir() else path.read_bytes()
    other_formats = [format for format in all_formats().values() if format.name not in {*GENERAL, FORMAT_OF[name]}]
    assert [format.name for format in other_formats if _takes(format, path, head)] == []


@pytest.mark.parametrize("name", ["locomo.json", "amem.json"])
def test_attachments_do_not_change_the_format_of_an_export(name: str, tmp_path: Path) -> None:
    source, copies = SAMPLES / name, [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    for copy in copies:
        with Memory(":memory:") as memory:
            memory.import_transcript(source)
            memory.export(copy)
        source = copy
    first, second = (copy.read_bytes() for copy in copies)
    assert first == second != b""


def _takes(format: object, path: Path, head: bytes) -> bool:
    if path.is_dir() and not getattr(format, "folders", False):
        return False
    return bool(format.sniff(path, head))  # type: ignore[attr-defined]
