"""Mail: an mbox file of Thunderbird, Apple Mail, Gmail's Takeout or a mailing list, or one mail as ``.eml``.

A mail's id is its Message-ID, its title the subject, its speaker the sender's name, or address. A thread is a session,
named by Gmail's number or by the Message-ID of its first mail. References, In-Reply-To or else the subject of an answer
identify the thread. Quoted mails, signatures and HTML markup are removed; forwarded mails stay. Attached files become
``[file: plan.pdf]``. A mail that the file contains twice, with the same id and sender, is one event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from email import message_from_bytes
from email.errors import HeaderParseError, MessageError
from email.header import decode_header
from email.message import Message
from email.policy import Compat32
from email.utils import getaddresses, mktime_tz, parsedate_tz
from pathlib import Path
from typing import IO, Any

from zettel.model import Source
from zettel.transcripts import ReadRecord
from zettel.transcripts.archive_tree import files
from zettel.transcripts.parsing.content_blocks import with_files
from zettel.transcripts.parsing.lines import MAX_LINE
from zettel.transcripts.parsing.timestamps import unix_time
from zettel.transcripts.records import ContentKeys, record, rejected

from .charsets import text_of
from .mail_text import own_text, text_of_html

name = "mbox"

_ONE_MAIL = ".eml"

MAX_MAIL = 50_000_000
"""Longest mail with attachments, in bytes: more than any provider accepts."""

MAX_HEADER = 4_000
"""Characters of a header that are read; Python's email package needs quadratic time for some."""
_MAX_CONTENT_HEADER = 1_000
"""Likewise of the headers that describe a part: a type, an encoding, the name of a file."""
_MAX_BOUNDARY_TESTS = 10_000_000
"""Lines of a mail times its boundaries: Python's email package may test each line for each boundary."""
_BOUNDARY = re.compile(rb"boundary", re.IGNORECASE)

_FROM = re.compile(rb"From (?:\S+.* \d{4}(?: [+-]\d{4})?)?\r?\n?")  # newer Thunderbirds write a bare "From "
_QUOTED_FROM = re.compile(rb">+From ")
_HEADER = re.compile(rb"[!-9;-~]+:")
_ID = re.compile(r"<([^<>\s]+)>")
_ANSWER = re.compile(
    r"\s*(?:(?:re|aw|sv|vs|antw|odp|ynt|回复|答复|回覆|רע|رد|на|σχετ)\s?(?:\[\d+\])?\s?[:：]\s*)+", re.IGNORECASE
)
_FORWARD = re.compile(  # no "VS", for it forwards in Danish and answers in Finnish
    r"\s*(?:\[[^\]]*\]\s*)?(?:fwd?|wg|tr|rv|enc|i|vb|vl|videresend|pd|İLT|转发|轉寄)\s?[:：]", re.IGNORECASE
)
_MAX_REMEMBERED = 200_000  # mails and subjects in memory, from which later mails get their thread
_BROKEN = (ValueError, LookupError, TypeError, AttributeError, MessageError, RecursionError)
"""Errors of Python's email package for invalid mails."""
_MAX_RECEIVERS = 10  # in the metadata


def sniff(path: Path, head: bytes) -> bool:
    """Recognise a ``From`` line with a header below it, and in an ``.eml`` file a header alone."""
    first, _, rest = head.partition(b"\n")
    if path.suffix.lower() == _ONE_MAIL:
        return _HEADER.match(head.lstrip()) is not None
    return _FROM.fullmatch(first) is not None and _HEADER.match(rest.removeprefix(b">")) is not None


def read(path: Path) -> Iterator[ReadRecord]:
    """Yield the mails in order, None for repeated and empty ones; one mail at a time is in memory."""
    threads = _Threads()
    keys = ContentKeys()
    for file in files(path):
        with file.open() as stream:
            for line, data in _mails(stream, single=path.suffix.lower() == _ONE_MAIL):
                source = Source(file=file.where, position=str(line))
                if data is None:
                    yield rejected(source, f"the mail is longer than {MAX_MAIL:,} bytes")
                    continue
                if len(_BOUNDARY.findall(data)) * data.count(b"\n") > _MAX_BOUNDARY_TESTS:
                    yield rejected(source, "the mail has too many parts for its length")
                    continue
                try:
                    parsed = _mail(message_from_bytes(data, policy=_SHORT_HEADERS), source, threads, keys)
                except _BROKEN as error:
                    reason = " ".join(str(error).split()) or type(error).__name__
                    yield rejected(source, f"the mail cannot be read: {reason}")
                    continue
                yield parsed


class _ShortHeaders(Compat32):
    """Python's default policy with headers of at most ``MAX_HEADER`` characters."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[: _MAX_CONTENT_HEADER if name.lower().startswith("content-") else MAX_HEADER]


_SHORT_HEADERS = _ShortHeaders()


def _mails(stream: IO[bytes], *, single: bool) -> Iterator[tuple[int, bytes | None]]:
    """Yield each mail and its first line; None for too long a mail. A ``single`` mail is not split."""
    lines: list[bytes] = []
    size, first_line, number, blank = 0, 1, 0, True
    line = stream.readline(MAX_LINE)
    while line:
        following = stream.readline(MAX_LINE)
        number += 1
        if blank and not (single and number > 1) and _is_separator(line, following):
            if size:
                yield first_line, b"".join(lines) if size <= MAX_MAIL else None
            lines, size, first_line = [], 0, number
        else:
            size += len(line)
            if size <= MAX_MAIL:
                lines.append(line[1:] if line.startswith(b">") and _QUOTED_FROM.match(line) else line)
        blank = line in (b"\n", b"\r\n")
        line = following
    if size:
        yield first_line, b"".join(lines) if size <= MAX_MAIL else None


def _is_separator(line: bytes, following: bytes) -> bool:
    """Return whether a mail begins below a line, and the line is not text such as "From May to June 2024"."""
    return _FROM.fullmatch(line) is not None and _HEADER.match(following.removeprefix(b">")) is not None


def _mail(mail: Message, source: Source, threads: _Threads, keys: ContentKeys) -> ReadRecord:
    """Return the event of a mail; None for a repeated or empty mail."""
    if not mail.keys():
        return rejected(source, "the mail has no header")
    ids = _ID.findall(_first(mail, "message-id"))
    id = ids[0] if ids else None
    senders = _people(mail, "from") or _people(mail, "sender")
    speaker, address = senders[0] if senders else (None, None)
    if id is not None and threads.has_seen(id, address or speaker or ""):
        return None
    subject = _decoded(_first(mail, "subject"))
    text, names = _body(mail)
    forwards = _FORWARD.match(subject) is not None
    content = with_files(own_text(text, forwards=forwards), names) or subject
    if not content:
        return None
    metadata: dict[str, Any] = {"address": address} if address else {}
    if receivers := [name or address for name, address in [*_people(mail, "to"), *_people(mail, "cc")]]:
        metadata["to"] = ", ".join(receivers[:_MAX_RECEIVERS])
    if list_id := _decoded(_first(mail, "list-id")):
        metadata["channel"] = list_id.partition("<")[0].strip(' "') or list_id.strip("<>")
    if labels := _decoded(_first(mail, "x-gmail-labels")):
        metadata["labels"] = labels
    if names:
        metadata["attachments"] = names
    fields = {
        "content": content,
        "id": id,
        "title": subject or None,
        "speaker": speaker or address,
        "occurred_at": _moment(_first(mail, "date")),
        "session": threads.thread(mail, id, subject),
        "metadata": metadata,
    }
    return record(fields, source, keys)


class _Threads:
    """Finds the thread of each mail from the latest mails before it."""

    def __init__(self) -> None:
        self._root: dict[int, str] = {}
        self._by_subject: dict[str, str] = {}
        self._seen: dict[int, None] = {}

    def has_seen(self, id: str, sender: str) -> bool:
        """Return whether a mail with this id came before from this sender. Others may choose the same id."""
        key = hash((id, sender.casefold()))
        known = key in self._seen
        _remember(self._seen, key, None)
        return known

    def thread(self, mail: Message, id: str | None, subject: str) -> str | None:
        """Return Gmail's number of the thread, or the id of its first mail; None for a single mail without id."""
        answered = _ID.findall(f"{_first(mail, 'references')} {_first(mail, 'in-reply-to')}")
        topic = _ANSWER.sub("", subject, count=1).strip().casefold()
        root: str | None = _first(mail, "x-gm-thrid").strip() or None
        root = root or next((self._root[hash(mail_id)] for mail_id in answered if hash(mail_id) in self._root), None)
        if root is None and not answered and topic and _ANSWER.match(subject):
            root = self._by_subject.get(topic)
        root = root or (answered[0] if answered else id)
        if root is not None:
            for mail_id in (*answered[:1], *([id] if id else [])):
                _remember(self._root, hash(mail_id), root)
            if topic:
                _remember(self._by_subject, topic, root)
        return root


def _remember(known: dict[Any, Any], key: Any, value: Any) -> None:
    known[key] = value
    if len(known) > _MAX_REMEMBERED:
        del known[next(iter(known))]


def _body(mail: Message) -> tuple[str, list[str]]:
    """Return the text and the names of the attachments."""
    names: list[str] = []
    return "\n".join(text_of_html(text) if html else text for html, text in _texts(mail, names)), names


def _texts(part: Message, names: list[str]) -> list[tuple[bool, str]]:
    """Return the texts in order, each with whether it is HTML, and add the names of attachments to ``names``."""
    payload = part.get_payload()
    kind = part.get_content_type()
    name = _decoded(part.get_filename())
    if kind == "message/rfc822":
        inner = payload[0] if isinstance(payload, list) and payload else None
        names.append(name or (_decoded(_first(inner, "subject")) if isinstance(inner, Message) else "") or "mail")
    elif part.is_multipart() and isinstance(payload, list):
        alternatives = [_texts(inner, names) for inner in payload if isinstance(inner, Message)]
        if kind == "multipart/alternative":  # one text in several forms: take the plain one, if any
            return min(filter(None, alternatives), key=lambda texts: any(html for html, _ in texts), default=[])
        return [text for texts in alternatives for text in texts]
    elif name or part.get_content_disposition() == "attachment":
        if name and not (part.get("Content-ID") and part.get_content_maintype() == "image"):
            names.append(name)
    elif kind in ("text/plain", "text/html"):
        data = part.get_payload(decode=True)
        text = text_of(data, part.get_content_charset()) if isinstance(data, bytes) else ""
        return [(kind == "text/html", text)] if text.strip() else []
    return []


def _decoded(header: str | None) -> str:
    """Return a header's text on one line, with decoded words."""
    if not header:
        return ""
    try:
        parts = decode_header(header)
    except HeaderParseError:
        parts = [(header, None)]
    return " ".join("".join(_word(*part) for part in parts).split())


def _word(data: str | bytes, charset: str | None) -> str:
    # Python encodes the text beside encoded words with raw-unicode-escape.
    return data if isinstance(data, str) else text_of(data, charset or "raw-unicode-escape")


def _headers(mail: Message, name: str) -> list[str]:
    """Return all headers with a lower-case name, undecoded, with invalid bytes as text."""
    values = [str(value) for key, value in mail.raw_items() if key.lower() == name]
    return [text_of(value.encode("utf-8", "surrogateescape"), None) for value in values]


def _first(mail: Message, name: str) -> str:
    return next(iter(_headers(mail, name)), "")


def _people(mail: Message, header: str) -> list[tuple[str, str]]:
    """Return names and addresses."""
    addresses = getaddresses(_headers(mail, header))
    return [(_decoded(name), address) for name, address in addresses if name or address]


def _moment(header: str) -> datetime | None:
    parsed = parsedate_tz(header) if header else None
    try:
        # Mails without a zone are in UTC: for None, mktime_tz would use the zone of this machine.
        return unix_time(mktime_tz((*parsed[:9], parsed[9] or 0))) if parsed else None
    except (ValueError, OverflowError):
        return None
