"""WhatsApp's text export of a chat: the .txt alone, or the .zip or folder with the files that were sent.

::

    31/12/2023, 21:05 - Ann: Happy new year!          (Android)
    [31.12.23, 21:05:09] Ann: Happy new year!         (iPhone)

Dates are written in the phone's language, without a zone: see :mod:`~zettel.transcripts.whatsapp_dates`. The file
is read twice, once to see whether day or month comes first. Lines without a date go on with the message above. Left
out: what WhatsApp itself says (who joined, the notice of encryption), messages that were deleted, and media that was
not exported and has no name. A file that was sent is told as ``[file: plan.pdf]``. The chat's name is in the metadata
(``channel``); ``session`` is None, as a chat has no threads. Messages have no ids: they are known by what they say
and when.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timezone, tzinfo
from pathlib import Path, PurePosixPath

from zettel.model import MAX_CONTENT_BYTES, Event, Source

from . import HEAD_BYTES, Record, Rejected
from .content_blocks import as_list, told_media
from .lines import head_text, lines
from .records import record, rejected
from .trees import File, files, is_tree, wrapping
from .whatsapp_dates import MARKS, Order, Stamp, clean, stamp
from .whatsapp_words import DELETED, EDITED

name = "whatsapp"
folders = True
gaps = True
local_times = True

_LRM = "\u200e"  # on iPhones it stands before whatever WhatsApp itself says
_MARKS = "".join(map(chr, MARKS))
_BRACKETED = re.compile(rf"[{_MARKS}]*\[(?P<stamp>[^\]]{{8,60}})\] ?(?P<rest>.*)")
_DASHED = re.compile(
    r"(?P<stamp>.{8,60}?)(?: [-–] |(?<=\d), (?=[^:]{1,100} : )|(?<=[\d\w.]): (?=[^:]{1,100}: ))(?P<rest>.*)"
)
_SAID = re.compile(r"(?P<role>[^:]{1,100}?)\s?:(?: (?P<text>.*)|$)")
_QUOTES = re.compile('["“”„«»]')

_FILE = r"(?P<file>[^<>:/\\\n]+\.\w{1,10})"
_ATTACHED = re.compile(rf"{_LRM}?<[^<>:\n]+: ?{_FILE}>")
_ATTACHED_ANDROID = re.compile(rf"{_LRM}?{_FILE} \([^()\n]+\)(?:\n|$)")
_LEFT_OUT = re.compile(r"<[^<>:/=\n]+>")  # "<Media omitted>", in any language
_EDITED = re.compile(rf"[^<>\n]{{0,60}}(?:{EDITED})[^<>\n]{{0,60}}>", re.IGNORECASE)
_SHARED = re.compile(r"[^\W\d_]+: ?(?:\n|https?://)")  # a poll, a place: said by a person, in WhatsApp's words
_CHAT = re.compile(r".*whatsapp.*?(?: with | mit | con | com | avec | met | с | - )(?P<name>.+)", re.IGNORECASE)
_VOTES = re.compile(r" \(\d+ [^()\n]+\)$", re.MULTILINE)  # which the next export tells otherwise
_OPTION = r"[^\n]* \(\d+ [^()\n]+\)"
_POLL = re.compile(rf"([^\W\d_]+):\n[^\n]*\n([^\W\d_]+): {_OPTION}(?:\n\2: {_OPTION})+")  # on Androids, without a sign
_IPHONES = "_chat.txt"
_SENT = re.compile(r"-WA\d{4}|^(?:.*/)?00\d{6}-")  # how Android and iPhones call what was sent
_COPY = re.compile(r" ?\(\d+\)$")  # what a browser calls a file that was there already
_SNIFFED_LINES = 20


def sniff(path: Path, head: bytes) -> bool:
    """A text whose first line is dated as WhatsApp does it; a zip or folder with such a text and what was sent."""
    if not is_tree(path):
        return _looks_so(path.name, head)
    chat = _chat(path)
    if chat is None:
        return False
    with chat.open() as stream:
        return _looks_so(chat.name, stream.read(HEAD_BYTES))


def beside(path: Path) -> Iterator[File]:
    """Files in a chat's folder or zip that were not sent there: the chat would tell the names of those that were."""
    chat = _chat(path)
    others = [file for file in files(path) if chat and file.name != chat.name and not _SENT.search(file.name)]
    told = read(path) if others else iter(())
    sent = {name for said in told if isinstance(said, Event) for name in as_list(said.metadata.get("attachments"))}
    return (file for file in others if PurePosixPath(file.name).name not in sent)


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """The messages in order; dates are taken as the clock showed them in ``zone``. Raises ``BadRecord``."""
    chat = _chat(path) if is_tree(path) else next(files(path))
    if chat is None:
        return
    order, bracketed = _survey(chat)
    channel = _channel(path, chat)
    message: _Message | None = None
    with chat.open() as stream:
        for number, line in lines(stream, chat.where):
            if isinstance(line, Rejected):
                yield line
                continue
            begun = _begun(line)
            if begun is not None and begun[1] == bracketed:
                if message is not None:
                    yield from message.records(order, zone, channel)
                message = _Message(begun[0], begun[2], Source(file=chat.where, position=str(number)))
            elif message is not None:
                message.add(line)
            elif line.strip():
                source = Source(file=chat.where, position=str(number))
                yield rejected(source, "no date: a message begins with one, as '31/12/2023, 21:05 - Ann: ' does")
    if message is not None:
        yield from message.records(order, zone, channel)


class _Message:
    def __init__(self, stamp: Stamp, rest: str, source: Source) -> None:
        self._stamp = stamp
        self._lines = [rest]
        self._length = len(rest)
        self._source = source

    def add(self, line: str) -> None:
        if self._length <= MAX_CONTENT_BYTES:  # beyond it the message is refused, however much more there is
            self._lines.append(line)
            self._length += len(line)

    def records(self, order: str, zone: tzinfo, channel: str) -> Iterator[Record]:
        """Its event; nothing for what WhatsApp itself said."""
        said = _SAID.match(self._lines[0])
        if said is None or len(_QUOTES.findall(said["role"])) % 2:  # a colon in a group's name, in quotes
            return
        try:
            occurred_at = self._stamp.moment(order, zone)
        except ValueError:
            yield rejected(self._source, f"there is no such day since WhatsApp began, as the file's dates go ({order})")
            return
        text = "\n".join([said["text"] or "", *self._lines[1:]])
        content, attached, edited = _content(text)
        if not content:
            return
        metadata: dict[str, object] = {"channel": channel}
        if attached:
            metadata["attachments"] = attached
        if edited:
            metadata["edited"] = True
        role = clean(said["role"]).removeprefix("~").strip()
        fields = {"content": content, "role": role, "occurred_at": occurred_at, "metadata": metadata}
        yield record(fields, self._source)


def _content(text: str) -> tuple[str, list[str], bool]:
    """What was said, the files sent with it, and whether it was edited; "" for what nobody said."""
    attached: list[str] = []

    def note(found: re.Match[str]) -> str:
        attached.append(clean(found["file"]))
        return ""

    text = _ATTACHED.sub(note, text)
    if not attached:
        text = _ATTACHED_ANDROID.sub(note, text, count=1) if _ATTACHED_ANDROID.match(text) else text
    before, _, last = text.rstrip().rpartition("<")
    edited = _EDITED.fullmatch(last) is not None
    text = before if edited else text
    by_whatsapp = text.startswith(_LRM)
    text = text.translate(MARKS).strip()
    if (by_whatsapp and _SHARED.match(text)) or ((poll := _POLL.fullmatch(text)) and poll[1].isupper()):
        text = _VOTES.sub("", text)
    elif by_whatsapp or (_LEFT_OUT.fullmatch(text) and (" " in text or not text.isascii())):
        text = ""
    if text.casefold().rstrip(".。") in DELETED:
        text = ""
    told = [text, *(told_media("file", one) for one in attached)]
    return "\n".join(part for part in told if part), attached, edited


def _begun(line: str) -> tuple[Stamp, bool, str] | None:
    """The date that a line begins with, whether it is in brackets, and the rest; None if it goes on with a message."""
    first = line[:8].translate(MARKS)[:1]
    if first == "[":
        found, bracketed = _BRACKETED.match(line), True
    elif first.isdigit():
        found, bracketed = _DASHED.match(line), False
    else:
        return None
    told = stamp(found["stamp"]) if found else None
    if found is None or told is None or (bracketed and told.second is None):
        return None
    return told, bracketed, found["rest"]


def _survey(chat: File) -> tuple[str, bool]:
    """In what order the dates' numbers stand, and whether they are in brackets, as most are."""
    orders = {True: Order(), False: Order()}
    counts = {True: 0, False: 0}
    with chat.open() as stream:
        for _, line in lines(stream, chat.where):
            begun = None if isinstance(line, Rejected) else _begun(line)
            if begun is not None:
                orders[begun[1]].see(begun[0])
                counts[begun[1]] += 1
    bracketed = counts[True] > counts[False]
    return orders[bracketed].best(), bracketed


def _looks_so(name: str, head: bytes) -> bool:
    # Without an ending it may be what comes by standard input.
    if PurePosixPath(name).suffix.lower() not in ("", ".txt") or (
        b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff"))
    ):
        return False
    written = [line for line in head_text(head).lstrip("\ufeff").splitlines() if line.strip()][:_SNIFFED_LINES]
    begun = [begun for line in written if (begun := _begun(line)) is not None]
    if not begun or _begun(written[0]) is None:
        return False
    told, bracketed, _ = begun[0]
    if not bracketed or told.sign != "-" or told.numbers[0] <= 99 or "," in written[0].partition("]")[0]:
        return True
    # "[2023-12-31 21:05:09] Ann: " may be any program's.
    return "chat" in name.lower() or _LRM in head_text(head)


def _chat(path: Path) -> File | None:
    """The text of the chat in a folder or zip; None if that may hold anything else."""
    found = list(files(path))
    base = wrapping(found)
    texts = [file for file in found if file.name.lower().endswith(".txt") and "/" not in file.name.removeprefix(base)]
    of_iphone = [file for file in texts if file.name.removeprefix(base).lower() == _IPHONES]
    if of_iphone:
        return of_iphone[0]
    named = [file for file in texts if "whatsapp" in file.name.removeprefix(base).lower()]
    chats = named if named else texts
    others = [file for file in found if file not in chats]
    is_sent = "whatsapp" in path.name.lower() or all(_SENT.search(file.name) for file in others)
    return chats[0] if len(chats) == 1 and is_sent else None


def _channel(path: Path, chat: File) -> str:
    """The chat's name, from that of the file, or of the zip or folder around it."""
    name = PurePosixPath(chat.name).stem
    if name.strip("_").lower() == "chat":
        outer = path if is_tree(path) else path.resolve().parent
        name = outer.name if outer.is_dir() else outer.stem
    name = _COPY.sub("", name)
    found = _CHAT.fullmatch(name)
    return clean(found["name"] if found else name)
