"""WhatsApp's text export of a chat: the .txt alone, or the .zip or folder with the files of the chat.

::

    31/12/2023, 21:05 - Ann: Happy new year!          (Android)
    [31.12.23, 21:05:09] Ann: Happy new year!         (iPhone)

Dates are in the phone's language, without a zone: see ``whatsapp_dates``. The file is read twice, first to find the
order of day and month. Lines without a date continue the message above. WhatsApp's own messages (joins, the notice of
encryption), deleted messages and omitted media are skipped. A file becomes ``[file: plan.pdf]``. The chat's name is
in the metadata (``channel``). A chat has no threads, so ``session`` is None. Content and time identify a message,
because it has no id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timezone, tzinfo
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from zettel.model import MAX_CONTENT_BYTES, Event, Source
from zettel.transcripts import Record, Rejected
from zettel.transcripts.archive_tree import File, files, files_inside, is_tree
from zettel.transcripts.parsing.content_blocks import with_files
from zettel.transcripts.parsing.json_values import as_list, present
from zettel.transcripts.parsing.lines import head_text, lines
from zettel.transcripts.records import record, rejected

from .whatsapp_dates import MARKS, DateOrder, Stamp, clean, stamp
from .whatsapp_words import DELETED, EDITED

name = "whatsapp"
folders = True
gaps = True
local_times = True

_LRM = "\u200e"  # on iPhones it precedes WhatsApp's own messages
_MARKS = "".join(map(chr, MARKS))
_BRACKETED = re.compile(rf"[{_MARKS}]*\[(?P<stamp>[^\]]{{8,60}})\] ?(?P<rest>.*)")
_DASHED = re.compile(
    r"(?P<stamp>.{8,60}?)(?: [-–] |(?<=\d), (?=[^:]{1,100} : )|(?<=[\d\w.]): (?=[^:]{1,100}: ))(?P<rest>.*)"
)
_SPOKEN = re.compile(r"(?P<speaker>[^:]{1,100}?)\s?:(?: (?P<text>.*)|$)")
_QUOTES = re.compile('["“”„«»]')

_FILE = r"(?P<file>[^<>:/\\\n]+\.\w{1,10})"
_ATTACHED = re.compile(rf"{_LRM}?<[^<>:\n]+: ?{_FILE}>")
_ATTACHED_ANDROID = re.compile(rf"{_LRM}?{_FILE} \([^()\n]+\)(?:\n|$)")
_OMITTED = re.compile(r"<[^<>:/=\n]+>")  # "<Media omitted>", in any language
_EDITED = re.compile(rf"[^<>\n]{{0,60}}(?:{EDITED})[^<>\n]{{0,60}}>", re.IGNORECASE)
_SHARED = re.compile(r"[^\W\d_]+: ?(?:\n|https?://)")  # a poll or a place, which WhatsApp writes for a person
_CHAT = re.compile(r".*whatsapp.*?(?: with | mit | con | com | avec | met | с | - )(?P<name>.+)", re.IGNORECASE)
_VOTES = re.compile(r" \(\d+ [^()\n]+\)$", re.MULTILINE)  # which differ in the next export
_OPTION = r"[^\n]* \(\d+ [^()\n]+\)"
_POLL = re.compile(rf"([^\W\d_]+):\n[^\n]*\n([^\W\d_]+): {_OPTION}(?:\n\2: {_OPTION})+")  # on Android, without a mark
_IPHONES = "_chat.txt"
_SENT = re.compile(r"-WA\d{4}|^(?:.*/)?00\d{6}-")  # names of sent files on Android and iPhones
_COPY = re.compile(r" ?\(\d+\)$")  # a browser's suffix for another file of that name
_SNIFFED_LINES = 20


class _Begin(NamedTuple):
    """The beginning of a message: its date, whether this is in brackets, and the rest of the line."""

    stamp: Stamp
    bracketed: bool
    rest: str


def sniff(path: Path, head: bytes) -> bool:
    """Recognise a text whose first line has WhatsApp's date, and a zip or folder with such a text and sent files."""
    if not is_tree(path):
        return _looks_like_chat(path.name, head)
    chat = _chat(path)
    return chat is not None and _looks_like_chat(chat.name, chat.head())


def extra_files(path: Path) -> Iterator[File]:
    """Yield the files of a folder or zip that were not sent in the chat, which names the sent ones."""
    chat = _chat(path)
    others = [file for file in files(path) if chat and file.name != chat.name and not _SENT.search(file.name)]
    events = (item for item in (read(path) if others else ()) if isinstance(item, Event))
    sent = {name for event in events for name in as_list(event.metadata.get("attachments"))}
    return (file for file in others if PurePosixPath(file.name).name not in sent)


def read(path: Path, zone: tzinfo = timezone.utc) -> Iterator[Record]:
    """Yield the messages in order; their dates are local times of ``zone``. Raises ``BadRecord``."""
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
            begin = _begin(line)
            if begin is not None and begin.bracketed == bracketed:
                if message is not None:
                    yield from message.records(order, zone, channel)
                message = _Message(begin, Source(file=chat.where, position=str(number)))
            elif message is not None:
                message.add(line)
            elif line.strip():
                source = Source(file=chat.where, position=str(number))
                yield rejected(source, "no date: a message begins with one, as '31/12/2023, 21:05 - Ann: ' does")
    if message is not None:
        yield from message.records(order, zone, channel)


class _Message:
    def __init__(self, begin: _Begin, source: Source) -> None:
        self._stamp = begin.stamp
        self._lines = [begin.rest]
        self._length = len(begin.rest)
        self._source = source

    def add(self, line: str) -> None:
        if self._length <= MAX_CONTENT_BYTES:  # a longer message is rejected anyway
            self._lines.append(line)
            self._length += len(line)

    def records(self, order: str, zone: tzinfo, channel: str) -> Iterator[Record]:
        """Yield the event; nothing for WhatsApp's own messages."""
        spoken = _SPOKEN.match(self._lines[0])
        if spoken is None or len(_QUOTES.findall(spoken["speaker"])) % 2:  # a colon in a group's name, in quotes
            return
        try:
            occurred_at = self._stamp.moment(order, zone)
        except ValueError:
            yield rejected(self._source, f"the date does not exist since WhatsApp began, in the file's order {order}")
            return
        content, attached, is_edited = _content("\n".join([spoken["text"] or "", *self._lines[1:]]))
        if not content:
            return
        fields: dict[str, Any] = {
            "content": content,
            "speaker": clean(spoken["speaker"]).removeprefix("~").strip(),
            "occurred_at": occurred_at,
            "metadata": {"channel": channel, **present({"attachments": attached, "edited": is_edited})},
        }
        yield record(fields, self._source)


def _content(text: str) -> tuple[str, list[str], bool]:
    """Return text, names of files, and whether it was edited; "" for messages that no person wrote."""
    attached: list[str] = []

    def attach(match: re.Match[str]) -> str:
        attached.append(clean(match["file"]))
        return ""

    text = _ATTACHED.sub(attach, text)
    if not attached and _ATTACHED_ANDROID.match(text):
        text = _ATTACHED_ANDROID.sub(attach, text, count=1)
    before, _, last = text.rstrip().rpartition("<")
    is_edited = _EDITED.fullmatch(last) is not None
    text = before if is_edited else text
    by_whatsapp = text.startswith(_LRM)
    text = text.translate(MARKS).strip()
    if (by_whatsapp and _SHARED.match(text)) or ((poll := _POLL.fullmatch(text)) and poll[1].isupper()):
        text = _VOTES.sub("", text)
    elif by_whatsapp or (_OMITTED.fullmatch(text) and (" " in text or not text.isascii())):
        text = ""
    if text.casefold().rstrip(".。") in DELETED:
        text = ""
    return with_files(text, attached), attached, is_edited


def _begin(line: str) -> _Begin | None:
    """Parse the first line of a message; None for a line that continues one."""
    first = line[:8].translate(MARKS)[:1]
    bracketed = first == "["
    if not bracketed and not first.isdigit():
        return None
    match = (_BRACKETED if bracketed else _DASHED).match(line)
    date = stamp(match["stamp"]) if match else None
    if match is None or date is None or (bracketed and date.second is None):
        return None
    return _Begin(date, bracketed, match["rest"])


def _survey(chat: File) -> tuple[str, bool]:
    """Return the order of day, month and year, and whether most dates are in brackets."""
    orders = {True: DateOrder(), False: DateOrder()}
    counts = {True: 0, False: 0}
    with chat.open() as stream:
        for _, line in lines(stream, chat.where):
            begin = None if isinstance(line, Rejected) else _begin(line)
            if begin is not None:
                orders[begin.bracketed].see(begin.stamp)
                counts[begin.bracketed] += 1
    bracketed = counts[True] > counts[False]
    return orders[bracketed].best(), bracketed


def _looks_like_chat(name: str, head: bytes) -> bool:
    # Standard input has no suffix.
    is_binary = b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff"))
    if is_binary or PurePosixPath(name).suffix.lower() not in ("", ".txt"):
        return False
    text = head_text(head)
    first_lines = [line for line in text.lstrip("\ufeff").splitlines() if line.strip()][:_SNIFFED_LINES]
    begin = _begin(first_lines[0]) if first_lines else None
    if begin is None:
        return False
    date = begin.stamp
    if not begin.bracketed or date.sign != "-" or date.numbers[0] <= 99 or "," in first_lines[0].partition("]")[0]:
        return True
    # Other programs write "[2023-12-31 21:05:09] Ann: " too.
    return "chat" in name.lower() or _LRM in text


def _chat(path: Path) -> File | None:
    """Return the text of the chat in a folder or zip; None if the folder may contain anything else."""
    tree_files = files_inside(path)
    texts = [(name.lower(), file) for name, file in tree_files if name.lower().endswith(".txt") and "/" not in name]
    for name, file in texts:
        if name == _IPHONES:
            return file
    chats = [file for name, file in texts if "whatsapp" in name] or [file for _, file in texts]
    others = [file for _, file in tree_files if file not in chats]
    is_sent = "whatsapp" in path.name.lower() or all(_SENT.search(file.name) for file in others)
    return chats[0] if len(chats) == 1 and is_sent else None


def _channel(path: Path, chat: File) -> str:
    """Return the chat's name, from the name of the file, or of the zip or folder that contains it."""
    name = PurePosixPath(chat.name).stem
    if name.strip("_").lower() == "chat":
        outer = path if is_tree(path) else path.resolve().parent
        name = outer.name if outer.is_dir() else outer.stem
    name = _COPY.sub("", name)
    match = _CHAT.fullmatch(name)
    return clean(match["name"] if match else name)
