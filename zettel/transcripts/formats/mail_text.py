"""Text of a mail without quoted mails, signature and HTML markup, but with forwarded mails."""

from __future__ import annotations

import re

from zettel.transcripts.parsing.html_tokens import StartTag, html_tokens

MAX_HTML = 2_000_000
"""Characters of HTML that are parsed at most."""

_QUOTE = re.compile(r"^\s{0,3}> ?")
_SIGNATURE = re.compile(r"--\s?")
_MAX_SIGNATURE = 12  # lines below "--"; a longer text is not a signature
_ORIGINAL = re.compile(
    r"\s*[-_]{3,}\s*(?:original|ursprüngliche|message d'origine|mensaje|mensagem original|messaggio|oorspronkelijk"
    r"|исходное|original[- ]?nachricht|alkuperäinen|ursprungligt|oprindelig|opprinnelig|wiadomość)"
    r".{0,200}[-_]{3,20}\s*",
    re.IGNORECASE,
)
_FORWARDED = re.compile(
    r"\s*[-_]{3,}\s*(?:forwarded message|weitergeleitete nachricht|message (?:transféré|transmis)|mensaje reenviado"
    r"|mensagem (?:re)?encaminhada|messaggio inoltrato|doorgestuurd bericht|vidarebefordrat meddelande"
    r"|videresendt (?:melding|meddelelse)|(?:välitetty|edelleenlähetetty) viesti|przekazana wiadomość"
    r"|treść przekazanej wiadomości|wiadomość przesłana dalej|(?:пересылаемое|перенаправленное) сообщение"
    r"|(?:переслане|перенаправлене) повідомлення|přeposlaná zpráva|转发的消息|转发邮件信息).{0,200}[-_]{3,20}\s*"
    # Apple Mail
    r"|\s*(?:begin forwarded message|anfang der weitergeleiteten (?:nachricht|e-mail)"
    r"|début du message (?:réexpédié|transféré)|inicio del mensaje reenviado|inizio messaggio inoltrato"
    r"|início da mensagem (?:re)?encaminhada|begin doorgestuurd bericht|vidarebefordrat (?:mejl|brev)"
    r"|start på videresendt besked|videresendt melding|välitetty viesti alkaa|początek przekazywanej wiadomości"
    r"|начало переадресованного сообщения)\s?:\s*",
    re.IGNORECASE,
)
_RULE = re.compile(r"\s*_{10,}\s*")  # Outlook's line above an answered mail
_FROM = re.compile(
    r"\s*\*?(?:from|von|de|da|van|från|fra|lähettäjä|od|от|від|kimden|发件人|寄件者|差出人|보낸 사람|من|מאת)"
    r"\*?\s?[:：]\*?\s?\S.*",
    re.IGNORECASE,
)
_HEADER = re.compile(r"\s*\*?[^\W\d_]+(?: [^\W\d_]+)?\*?\s?[:：]\*?\s?\S.*")
_SENT_OR_SUBJECT = re.compile(
    r"\s*\*?(?:sent|gesendet|envoyé|enviad[ao]|inviat[ao]|verzonden|skickat|sendt|lähetetty|wysłan[oey]|отправлено"
    r"|надіслано|изпратено|odesláno|odoslané|poslano|στάλθηκε|εστάλη|gönder(?:ilen|ildi|me)|发送时间|發送時間|寄件日期|送信日時|보낸|נשלח"
    r"|subject|betreff|objet|asunto|assunto|oggetto|onderwerp|ämne|emne|aihe|temat|тема|относно|předmět|predmet|θέμα|konu|主题|主旨|件名"
    r"|제목|נושא|الموضوع)\b",
    re.IGNORECASE,
)
_HEADER_LINES = 5  # below the sender's, among which is a date or subject
_WHEN = re.compile(r"\b\d{4}\b|\d[:.]\d\d")
_WROTE = re.compile(
    r"wrote|writes|schrieb|a écrit|escribió|escreveu|ha scritto|schreef|skrev|kirjoitti|писал|пишет|napisał|@"
)
_ATTRIBUTION_LINES = 3  # "On Monday, 8 January 2024 at 09:00, Ann <ann@example.org> wrote:" with line breaks


def own_text(text: str, *, forwards: bool = False) -> str:
    """Return a plain text without quotes, their attribution lines, and the signature.

    A forwarded mail stays, without its quote marks. Outlook marks answered and forwarded mails alike, so ``forwards``
    states by the subject that the mail forwards another one.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    end = next((at for at in range(len(lines)) if _is_other_mail(lines, at)), len(lines))
    body = _above_signature(lines[:end])
    if end < len(lines) and (forwards or _is_forward(lines, end)):
        body += ["", *_forwarded(lines[end:])]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(body)).strip()


def _above_signature(lines: list[str]) -> list[str]:
    """Return the lines above the signature that are not quoted."""
    body: list[str] = []
    for at, line in enumerate(lines):
        if _QUOTE.match(line):
            if body and not _QUOTE.match(lines[at - 1]):
                while body and not body[-1].strip():
                    body.pop()
                del body[len(body) - _attribution(body) :]
        elif _is_signature(lines, at):
            break
        else:
            body.append(line.rstrip())
    return body


def _is_other_mail(lines: list[str], at: int) -> bool:
    """Return whether a forwarded or answered mail begins on a line."""
    return _is_forward(lines, at) or _ORIGINAL.fullmatch(lines[at]) is not None or _is_header(lines, at)


def _is_forward(lines: list[str], at: int) -> bool:
    """Return whether a line announces a forwarded mail that is not part of an answered mail."""
    if not _FORWARDED.fullmatch(_QUOTE.sub("", lines[at])):
        return False
    if not _QUOTE.match(lines[at]):
        return True
    # Apple Mail, and Gmail in HTML, quote this line too: then the quote begins with it, without an attribution.
    while at and not _QUOTE.sub("", lines[at - 1]).strip():
        at -= 1
    above = [line.rstrip() for line in lines[max(at - _ATTRIBUTION_LINES, 0) : at]]
    return not above or not (_QUOTE.match(above[-1]) or _attribution(above))


def _forwarded(lines: list[str]) -> list[str]:
    """Return the lines of a forwarded mail, without one level of quotes if it is quoted."""
    first_lines = [line for line in lines if line.strip()][:2]
    return [(_QUOTE.sub("", line) if any(map(_QUOTE.match, first_lines)) else line).rstrip() for line in lines]


def _is_signature(lines: list[str], at: int) -> bool:
    if not _SIGNATURE.fullmatch(lines[at]):
        return False
    return lines[at] == "-- " or sum(bool(line_below.strip()) for line_below in lines[at + 1 :]) <= _MAX_SIGNATURE


def _is_header(lines: list[str], at: int) -> bool:
    """Return whether Outlook's header of an answered mail begins on a line: a sender, and similar lines below.

    Unlike "From: Oslo", "To: Bergen", such a header has an address, a date or a subject.
    """
    if _RULE.fullmatch(lines[at]):
        at = next((later for later in range(at + 1, min(at + 3, len(lines))) if lines[later].strip()), at)
    if not _FROM.fullmatch(lines[at]):
        return False
    below = [line for line in lines[at + 1 : at + 4] if line.strip()]
    is_mail = "@" in lines[at] or any(map(_SENT_OR_SUBJECT.match, lines[at + 1 : at + 1 + _HEADER_LINES]))
    return is_mail and len(below) >= 2 and all(map(_HEADER.fullmatch, below[:2]))


def _attribution(above: list[str]) -> int:
    """Return the number of last lines that state author or time of the quote below, and end with a colon."""
    if not above or not above[-1].endswith((":", "：")):
        return 0
    for count in range(1, _ATTRIBUTION_LINES + 1):
        lines = above[-count:]
        if len(lines) < count or not lines[0].strip():
            break
        if _WHEN.search(" ".join(lines)):
            return count
    return 1 if _WROTE.search(above[-1]) else 0


def text_of_html(html: str) -> str:
    """Return the text of HTML with a line for each block; lines of quoted mails begin with ``>``."""
    reader = _Html()
    for token in html_tokens(html[:MAX_HTML]):
        if isinstance(token, str):
            reader.add_text(token)
        elif isinstance(token, StartTag):
            reader.open(token)
        else:
            reader.close(token.name)
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


_BLOCKS = frozenset("address article blockquote div dl dt dd h1 h2 h3 h4 h5 h6 hr ol p pre section table tr ul".split())
_INVISIBLE = frozenset("head script style title template".split())
_EMPTY = frozenset("area base br col embed hr img input link meta source track wbr".split())  # tags without an end
_HIDING = re.compile(
    r"display\s?:\s?none|visibility\s?:\s?hidden|font-size\s?:\s?0+(?:p[tx]|em|%)?\s?(?:;|!|$)", re.IGNORECASE
)
"""Styles of elements that a reader of a mail does not see: previews, and instructions to models."""
_QUOTES = re.compile(r"gmail_quote|gmail_attr|yahoo_quoted|moz-cite-prefix|protonmail_quote")
_EDGES = re.compile(
    r"appendonsend|divRplyFwdMsg|OutlookMessageHeader"
)  # Outlook's mark above an answered or forwarded mail
_EDGE = "-----Original Message-----"


class _Html:
    """Collects the text of HTML."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._has_edge = False
        self._skipped = ""  # the tag that is skipped, and its depth
        self._depth = 0
        self._quoted = ""  # the tag of a quote, and its depth
        self._quoted_depth = 0

    def _break(self) -> None:
        self.parts.append("\n> " if self._quoted else "\n")

    def open(self, start: StartTag) -> None:
        tag, attributes = start
        if self._skipped:
            self._depth += tag == self._skipped
            return
        marks = f"{attributes.get('class', '')} {attributes.get('id', '')}"
        if tag in _INVISIBLE or (tag not in _EMPTY and _HIDING.search(attributes.get("style", ""))):
            self._skipped, self._depth = tag, 1
        elif self._quoted:
            self._quoted_depth += tag == self._quoted
        elif (tag == "blockquote" and "cite" in attributes.get("type", "")) or _QUOTES.search(marks):
            self._quoted, self._quoted_depth = tag, 1
            self._break()
        elif not self._has_edge and _EDGES.search(marks):
            self._has_edge = True
            self.parts.append(f"\n{_EDGE}\n")
        if tag == "br" or tag in _BLOCKS:
            self._break()
        elif tag == "li":
            self._break()
            self.parts.append("- ")
        elif tag in ("td", "th"):
            self.parts.append(" ")

    def close(self, tag: str) -> None:
        if self._skipped:
            self._depth -= tag == self._skipped
            if not self._depth:
                self._skipped = ""
            return
        if tag == self._quoted:
            self._quoted_depth -= 1
            if not self._quoted_depth:
                self._quoted = ""
                self._break()
        if tag in _BLOCKS:
            self._break()

    def add_text(self, text: str) -> None:
        if not self._skipped:
            self.parts.append(re.sub(r"\s+", " ", text))
