"""Keys and passwords that give themselves away by their shape, so that an import can report them or keep them out.

A short list of our own: what is common in chats and agents' runs, and so special that ordinary talk never looks like
it. A password without a shape is not found. To ask whether a text holds any costs a search for a few fixed words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from zettel.model import Event, Source


class Shape(NamedTuple):
    """What one kind of secret looks like; every text that holds one holds one of the ``marks``."""

    kind: str
    marks: tuple[str, ...]
    pattern: re.Pattern[str]


def _shape(kind: str, marks: str, pattern: str) -> Shape:
    return Shape(kind, tuple(marks.split("|")), re.compile(pattern))


_START = r"(?<![\w-])"  # no part of a longer word: of risk-, for one
_END = r"(?![\w-])"

SHAPES = (
    # With its body, as lines or with \n written out; a mere mention has none, and one that is cut off ends early.
    _shape(
        "private key", "PRIVATE KEY",
        r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[^-]|-(?!----)){20,20000}-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        r"|(?:(?:\s|\\[nr])+[A-Za-z0-9+/=]{20,})+)",
    ),
    _shape("AWS access key", "AKIA|ASIA", r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    _shape(
        "AWS secret key", "ecret_access_key|SECRET_ACCESS_KEY|ecretAccessKey",
        r"(?i:secret_?access_?key)[\"']?\s{0,3}[=:]\s{0,3}[\"']?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])",
    ),
    _shape(
        "GitHub token", "ghp_|gho_|ghu_|ghs_|ghr_|github_pat_",
        r"\b(?:gh[opusr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})\b",
    ),
    _shape("GitLab token", "glpat-", _START + r"glpat-[\w.-]{20,}"),
    _shape("Slack token", "xox|xapp-", _START + r"(?:xox[abeoprs]-(?:\d-)?|xapp-\d-)[A-Za-z0-9-]{10,}"),
    _shape(
        "Slack webhook", "hooks.slack.com",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9]{5,}/[A-Za-z0-9/]{10,}",
    ),
    _shape(
        "Google key", "AIza|ya29.|GOCSPX-",
        r"\b(?:AIza[\w-]{35}|GOCSPX-[\w-]{28})" + _END + r"|\bya29\.[\w-]{30,}",
    ),
    # OpenAI, Anthropic, OpenRouter, DeepSeek and others; one without a digit is the name of a style or of a ship.
    _shape("model provider's key", "sk-|gsk_|hf_", _START + r"(?:sk-|gsk_|hf_)(?=[A-Za-z_-]{0,80}\d)[\w-]{20,}"),
    _shape("Stripe key", "k_live_|k_test_", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _shape("package registry token", "npm_|pypi-", r"\b(?:npm_[A-Za-z0-9]{36}\b|pypi-AgE[\w-]{50,})"),
    _shape("SendGrid key", "SG.", r"\bSG\.[\w-]{22}\.[\w-]{43}" + _END),
    _shape("Telegram bot token", ":AA", r"\b\d{8,10}:AA[\w-]{33}" + _END),
    _shape("Azure key", "AccountKey=|SharedAccessKey=", r"(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{40,90}={0,2}"),
    _shape("JWT", "eyJ", r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    _shape("password in an address", "://", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,100}:[^\s/@]{3,100}@(?=[\w\[])"),
)  # fmt: skip


class Secret(NamedTuple):
    """Where something of the shape of a secret stands; never the secret itself."""

    kind: str
    file: str
    position: str


def secrets_in(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """The kind and place of each secret in a text, kind after kind."""
    for kind, marks, pattern in SHAPES:
        for mark in marks:
            if mark in text:
                yield from ((kind, match) for match in pattern.finditer(text))
                break


def secrets_among(events: Sequence[Event], file: str) -> list[Secret]:
    """Those in what events of a file say, and what is told about them."""
    texts = ["\n\n".join(_texts(event)) for event in events]
    everything = "\n\n".join(texts)
    if not any(mark in everything for _, marks, _ in SHAPES for mark in marks):
        return []  # as nearly always, and cheaper to know of all at once
    found: list[Secret] = []
    for event, text in zip(events, texts, strict=True):
        place = event.source or Source(file=file)
        found += [Secret(kind, place.file, place.position or "") for kind, _ in secrets_in(text)]
    return found


def _texts(event: Event) -> Iterator[str]:
    yield event.content
    if event.title is not None:
        yield event.title
    todo: list[JsonValue] = [event.payload, event.metadata] if event.payload or event.metadata else []
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from value
            todo.extend(value.values())
        elif isinstance(value, list):
            todo.extend(value)
