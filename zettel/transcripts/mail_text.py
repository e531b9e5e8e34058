"""What the writer of a mail wrote: without the mail it answers, without a signature, and as text where it was HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

MAX_HTML = 2_000_000
"""Characters of HTML that are looked at: far more than people write, whatever a newsletter weighs."""

_QUOTE = re.compile(r"\s{0,3}>")
_SIGNATURE = re.compile(r"--\s?")
_LATER_LINES = 12  # more lines than that below "--" are no signature
_ORIGINAL = re.compile(
    r"\s*[-_]{3,}\s*(?:original|ursprüngliche|message d'origine|mensaje|mensagem original|messaggio|oorspronkelijk"
    r"|исходное|original[- ]?nachricht|alkuperäinen|ursprungligt|oprindelig|opprinnelig|wiadomość).*[-_]{3,}\s*",
    re.IGNORECASE,
)
_RULE = re.compile(r"\s*_{10,}\s*")  # Outlook draws it above the mail it answers
_FROM = re.compile(
    r"\s*\*?(?:from|von|de|da|van|från|fra|lähettäjä|od|от|від|kimden|发件人|寄件者|差出人|보낸 사람|من|מאת)"
    r"\*?\s?[:：]\*?\s?\S.*",
    re.IGNORECASE,
)
_HEADER = re.compile(r"\s*\*?[^\W\d_]+(?: [^\W\d_]+)?\*?\s?[:：]\*?\s?\S.*")
_WHEN = re.compile(r"\b\d{4}\b|\d[:.]\d\d")
_WROTE = re.compile(
    r"wrote|writes|schrieb|a écrit|escribió|escreveu|ha scritto|schreef|skrev|kirjoitti|писал|пишет|napisał|@"
)
_ATTRIBUTION_LINES = 3  # "On Monday, 8 January 2024 at 09:00, Ann <ann@example.org> wrote:" is wrapped so


def own_words(text: str) -> str:
    """A plain text's lines but for those quoted, what announces them, and what stands below a signature's dashes."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    kept: list[str] = []
    for at, line in enumerate(lines):
        if _QUOTE.match(line):
            if kept and not _QUOTE.match(lines[at - 1]):
                _drop_attribution(kept)
        elif _is_signature(lines, at) or _ORIGINAL.fullmatch(line) or _is_header(lines, at):
            break
        else:
            kept.append(line.rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


def _is_signature(lines: list[str], at: int) -> bool:
    if not _SIGNATURE.fullmatch(lines[at]):
        return False
    return lines[at] == "-- " or sum(bool(one.strip()) for one in lines[at + 1 :]) <= _LATER_LINES


def _is_header(lines: list[str], at: int) -> bool:
    """Whether the head of an answered mail begins here, as Outlook puts it: a sender, and lines alike below."""
    if _RULE.fullmatch(lines[at]):
        at = next((later for later in range(at + 1, min(at + 3, len(lines))) if lines[later].strip()), at)
    if not _FROM.fullmatch(lines[at]):
        return False
    below = [line for line in lines[at + 1 : at + 4] if line.strip()]
    return len(below) >= 2 and all(map(_HEADER.fullmatch, below[:2]))


def _drop_attribution(kept: list[str]) -> None:
    """Take away the last lines if they tell who wrote, or when, what is quoted below: they end with a colon."""
    while kept and not kept[-1].strip():
        kept.pop()
    if not kept or not kept[-1].endswith((":", "：")):
        return
    for count in range(1, _ATTRIBUTION_LINES + 1):
        lines = kept[-count:]
        if len(lines) < count or not lines[0].strip():
            break
        if _WHEN.search(" ".join(lines)):
            del kept[-count:]
            return
    if _WROTE.search(kept[-1]):
        kept.pop()


def text_of_html(html: str) -> str:
    """The text of HTML as a browser would show it, a line for each block; mails quoted inside are left out."""
    reader = _Html()
    try:
        reader.feed(html[:MAX_HTML])
        reader.close()
    except AssertionError:  # what Python's parser raises for some broken declarations
        return re.sub(r"<[^<>]*>", " ", html[:MAX_HTML]).strip()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


_BLOCKS = frozenset("address article blockquote div dl dt dd h1 h2 h3 h4 h5 h6 hr ol p pre section table tr ul".split())
_UNSEEN = frozenset("head script style title template".split())
_QUOTES = re.compile(
    r"gmail_quote|gmail_attr|yahoo_quoted|moz-cite-prefix|protonmail_quote|divRplyFwdMsg|OutlookMessageHeader"
)
_EDGES = ("appendonsend", "divRplyFwdMsg")  # what follows is the mail that Outlook answers


class _Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._over = False
        self._skipped = ""  # the tag that is being skipped,
        self._depth = 0  # and how often it is open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._skipped:
            self._depth += tag == self._skipped
            return
        told = {key: value or "" for key, value in attrs}
        self._over = self._over or told.get("id") in _EDGES
        marks = f"{told.get('class', '')} {told.get('id', '')}"
        if tag in _UNSEEN or (tag == "blockquote" and "cite" in told.get("type", "")) or _QUOTES.search(marks):
            self._skipped, self._depth = tag, 1
        elif tag == "br" or tag in _BLOCKS:
            self.parts.append("\n")
        elif tag == "li":
            self.parts.append("\n- ")
        elif tag in ("td", "th"):
            self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if self._skipped:
            self._depth -= tag == self._skipped
            if not self._depth:
                self._skipped = ""
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._skipped and not self._over:
            self.parts.append(re.sub(r"\s+", " ", data))
