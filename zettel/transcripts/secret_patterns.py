"""Patterns of keys and passwords that an import reports or redacts.

The list contains secrets that are common in chats and agent runs and that ordinary text never matches. A search for a
few fixed words rules out most texts. Passwords without a pattern are not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from zettel.model import Event, Source


class SecretPattern(NamedTuple):
    """The pattern of one kind of secret; every text with a match contains one of the ``marks``."""

    kind: str
    marks: tuple[str, ...]
    pattern: re.Pattern[str]


def _shape(kind: str, marks: str, pattern: str) -> SecretPattern:
    return SecretPattern(kind, tuple(marks.split("|")), re.compile(pattern))


_START = r"(?<![\w-])"  # no part of a longer word: of risk-, for one
_END = r"(?![\w-])"

SECRET_PATTERNS = (
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
    """Kind and location of a possible secret; never the secret itself."""

    kind: str
    file: str
    position: str


def secrets_in(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield kind and match of each secret in a text."""
    for kind, marks, pattern in SECRET_PATTERNS:
        for mark in marks:
            if mark in text:
                yield from ((kind, match) for match in pattern.finditer(text))
                break


def find_secrets(events: Sequence[Event], file: str) -> list[Secret]:
    """Return the secrets in texts, titles, payloads and metadata of the events of a file."""
    texts = ["\n\n".join(_texts(event)) for event in events]
    everything = "\n\n".join(texts)
    if not any(mark in everything for _, marks, _ in SECRET_PATTERNS for mark in marks):
        return []  # as nearly always, and cheaper to know of all at once
    secrets: list[Secret] = []
    for event, text in zip(events, texts, strict=True):
        place = event.source or Source(file=file)
        secrets += [Secret(kind, place.file, place.position or "") for kind, _ in secrets_in(text)]
    return secrets


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
