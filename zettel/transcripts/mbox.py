"""Mail: an mbox file, as Thunderbird, Apple Mail, Gmail's Takeout and mailing lists keep it, or one mail as ``.eml``.

A mail's id is its Message-ID, its title the subject, its role the sender's name, or address. A thread is a session,
called by Gmail's own number for it or the Message-ID it began with: found by References, In-Reply-To, or for answers
that tell neither by the subject. Quoted mails, signatures and HTML's marks are cut away, forwarded mails stay; files
that are attached are told as ``[file: plan.pdf]``. A mail that is in the file twice comes once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from email import message_from_bytes
from email.errors import HeaderParseError, MessageError
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, mktime_tz, parsedate_tz
from pathlib import Path
from typing import IO, Any

from zettel.model import Source

from . import Record
from .charsets import text_of
from .content_blocks import told_media
from .lines import MAX_LINE
from .mail_text import own_words, text_of_html
from .moments import unix_time
from .records import ContentKeys, record, rejected
from .trees import files

name = "mbox"

_ONE_MAIL = ".eml"

MAX_MAIL = 50_000_000
"""Longest mail in bytes with all that is attached: more than any provider lets through."""

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
_REMEMBERED = 200_000  # mails and subjects by which later ones find their thread, the latest
_BROKEN = (ValueError, LookupError, TypeError, AttributeError, MessageError, RecursionError)
"""All that Python's email package raises for mails that break its rules."""
_SHOWN_RECEIVERS = 10


def sniff(path: Path, head: bytes) -> bool:
    """A ``From`` line and a header below it; or a header alone in a file that is called ``.eml``."""
    first, _, rest = head.partition(b"\n")
    if path.suffix.lower() == _ONE_MAIL:
        return _HEADER.match(head.lstrip()) is not None
    return _FROM.fullmatch(first) is not None and _HEADER.match(rest.removeprefix(b">")) is not None


def read(path: Path) -> Iterator[Record]:
    """The mails in the order of the file, one at a time in memory."""
    threads = _Threads()
    keys = ContentKeys()
    for file in files(path):
        with file.open() as stream:
            for line, said in _mails(stream, alone=path.suffix.lower() == _ONE_MAIL):
                source = Source(file=file.where, position=str(line))
                if said is None:
                    yield rejected(source, f"the mail is longer than {MAX_MAIL:,} bytes")
                    continue
                try:
                    told = _mail(message_from_bytes(said), source, threads, keys)
                except _BROKEN as error:
                    reason = " ".join(str(error).split()) or type(error).__name__
                    yield rejected(source, f"the mail cannot be read: {reason}")
                    continue
                if told is not None:
                    yield told


def _mails(stream: IO[bytes], *, alone: bool) -> Iterator[tuple[int, bytes | None]]:
    """Each mail with the line it begins on; None for one that is too long. ``alone``: it is one, whatever it says."""
    lines: list[bytes] = []
    size, begun, number, blank = 0, 1, 0, True
    line = stream.readline(MAX_LINE)
    while line:
        following = stream.readline(MAX_LINE)
        number += 1
        if blank and not (alone and number > 1) and _separates(line, following):
            if size:
                yield begun, b"".join(lines) if size <= MAX_MAIL else None
            lines, size, begun = [], 0, number
        else:
            size += len(line)
            if size <= MAX_MAIL:
                lines.append(line[1:] if line.startswith(b">") and _QUOTED_FROM.match(line) else line)
        blank = line in (b"\n", b"\r\n")
        line = following
    if size:
        yield begun, b"".join(lines) if size <= MAX_MAIL else None


def _separates(line: bytes, following: bytes) -> bool:
    """Whether a mail begins below the line, which is blank above: "From May to June 2024" may stand in any mail."""
    return _FROM.fullmatch(line) is not None and _HEADER.match(following.removeprefix(b">")) is not None


def _mail(mail: Message, source: Source, threads: _Threads, keys: ContentKeys) -> Record | None:
    """The event of a mail; None for one that came before or says nothing."""
    if not mail.keys():
        return rejected(source, "no mail: it has no header")
    ids = _ID.findall(_first(mail, "message-id"))
    id = ids[0] if ids else None
    if id is not None and threads.has_seen(id):
        return None
    subject = _decoded(_first(mail, "subject"))
    text, names = _body(mail)
    forwards = _FORWARD.match(subject) is not None
    parts = [own_words(text, forwards=forwards), *(told_media("file", name) for name in names)]
    content = "\n".join(part for part in parts if part) or subject
    if not content:
        return None
    senders = _people(mail, "from") or _people(mail, "sender")
    role, address = senders[0] if senders else (None, None)
    metadata: dict[str, Any] = {"address": address} if address else {}
    if receivers := [told or mailbox for told, mailbox in [*_people(mail, "to"), *_people(mail, "cc")]]:
        metadata["to"] = ", ".join(receivers[:_SHOWN_RECEIVERS])
    if listed := _decoded(_first(mail, "list-id")):
        metadata["channel"] = listed.partition("<")[0].strip(' "') or listed.strip("<>")
    if labels := _decoded(_first(mail, "x-gmail-labels")):
        metadata["labels"] = labels
    if names:
        metadata["attachments"] = names
    fields = {
        "content": content,
        "id": id,
        "title": subject or None,
        "role": role or address,
        "occurred_at": _moment(_first(mail, "date")),
        "session": threads.thread(mail, id, subject),
        "metadata": metadata,
    }
    return record(fields, source, keys)


class _Threads:
    """Which thread a mail is in, by what the mails before told; the latest are remembered."""

    def __init__(self) -> None:
        self._root: dict[int, str] = {}
        self._by_subject: dict[str, str] = {}
        self._seen: dict[int, None] = {}

    def has_seen(self, id: str) -> bool:
        """Whether a mail of that id came before."""
        key = hash(id)
        known = key in self._seen
        _remember(self._seen, key, None)
        return known

    def thread(self, mail: Message, id: str | None, subject: str) -> str | None:
        """The thread's name: Gmail's number, or the id of its first mail; None for a mail alone without id."""
        answered = _ID.findall(f"{_first(mail, 'references')} {_first(mail, 'in-reply-to')}")
        about = _ANSWER.sub("", subject, count=1).strip().casefold()
        root: str | None = _first(mail, "x-gm-thrid").strip() or None
        root = root or next((self._root[hash(one)] for one in answered if hash(one) in self._root), None)
        if root is None and not answered and about and _ANSWER.match(subject):
            root = self._by_subject.get(about)
        root = root or (answered[0] if answered else id)
        if root is not None:
            for one in (*answered[:1], *([id] if id else [])):
                _remember(self._root, hash(one), root)
            if about:
                _remember(self._by_subject, about, root)
        return root


def _remember(known: dict[Any, Any], key: Any, value: Any) -> None:
    known[key] = value
    if len(known) > _REMEMBERED:
        del known[next(iter(known))]


def _body(mail: Message) -> tuple[str, list[str]]:
    """The text, and the names of what is attached."""
    names: list[str] = []
    return "\n".join(text_of_html(text) if html else text for html, text in _texts(mail, names)), names


def _texts(part: Message, names: list[str]) -> list[tuple[bool, str]]:
    """The texts in their order, each with whether it is HTML; ``names`` gets those of what is attached."""
    payload = part.get_payload()
    kind = part.get_content_type()
    name = _decoded(part.get_filename())
    if kind == "message/rfc822":
        inner = payload[0] if isinstance(payload, list) and payload else None
        names.append(name or (_decoded(_first(inner, "subject")) if isinstance(inner, Message) else "") or "mail")
    elif part.is_multipart() and isinstance(payload, list):
        within = [_texts(one, names) for one in payload if isinstance(one, Message)]
        if kind == "multipart/alternative":  # one text in several forms: the plain one, if any
            return min(filter(None, within), key=lambda texts: any(html for html, _ in texts), default=[])
        return [text for texts in within for text in texts]
    elif name or part.get_content_disposition() == "attachment":
        if name and not (part.get("Content-ID") and part.get_content_maintype() == "image"):
            names.append(name)
    elif kind in ("text/plain", "text/html"):
        said = part.get_payload(decode=True)
        text = text_of(said, part.get_content_charset()) if isinstance(said, bytes) else ""
        return [(kind == "text/html", text)] if text.strip() else []
    return []


def _decoded(header: str | None) -> str:
    """A header's text on one line, its encoded words read."""
    if not header:
        return ""
    try:
        parts = decode_header(header)
    except HeaderParseError:
        parts = [(header, None)]
    return " ".join("".join(_word(*part) for part in parts).split())


def _word(said: str | bytes, charset: str | None) -> str:
    # What stands beside encoded words comes from Python in an encoding of its own.
    return said if isinstance(said, str) else text_of(said, charset or "raw-unicode-escape")


def _headers(mail: Message, name: str) -> list[str]:
    """All headers of that name (in small letters), undecoded; bytes that no mail may have there are read, too."""
    return [_unescaped(str(value)) for key, value in mail.raw_items() if key.lower() == name]


def _unescaped(value: str) -> str:
    return text_of(value.encode("utf-8", "surrogateescape"), None)


def _first(mail: Message, name: str) -> str:
    return next(iter(_headers(mail, name)), "")


def _people(mail: Message, header: str) -> list[tuple[str, str]]:
    """Names and addresses."""
    found = getaddresses(_headers(mail, header))
    return [(_decoded(name), address) for name, address in found if name or address]


def _moment(header: str) -> datetime | None:
    told = parsedate_tz(header) if header else None
    try:
        # Without a zone mails tell UTC, for parsedate_tz has None there and mktime_tz would take this machine's.
        return unix_time(mktime_tz((*told[:9], told[9] or 0))) if told else None
    except (ValueError, OverflowError):
        return None
