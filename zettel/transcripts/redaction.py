"""Redaction of records before they are stored.

E-mail addresses, phone numbers, card and account numbers, and keys become ``[e-mail]``, ``[phone]``, ``[card]``,
``[account]`` and ``[key]``.
``phonenumbers`` (extra ``redact``) finds phone numbers; it is slow, so it only runs on texts with enough digits.

Ids and sessions must stay distinct. In them an address becomes a short hash, because ids of mails look like addresses.
An id with other private data is dropped, and the record gets an id from its redacted content. Digits without
separators in ids and sessions are database numbers and stay.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from zettel.core.arguments import checked
from zettel.core.privacy import map_keys, without
from zettel.errors import InvalidEvent, InvalidInput, MissingExtra
from zettel.model import MAX_NAME, Event, Source
from zettel.text.secret_shapes import CARD as CARD_NUMBER
from zettel.text.secret_shapes import IBAN, Secret, secrets_in

from . import Record, Rejected
from .records import ContentKeys, rejected

if TYPE_CHECKING:
    from phonenumbers import PhoneNumberMatch

MAIL, PHONE, CARD, ACCOUNT, KEY = "e-mail", "phone", "card", "account", "key"
"""Kinds of private data, as reports and marks name them."""
MARK = re.compile(rf"\[(?:{MAIL}|{PHONE}|{CARD}|{ACCOUNT}|{KEY})\]")
"""A mark that replaces private data."""

_HASH_BYTES = 6  # of an address in a name: enough for distinct hashes in a mailbox
_MAX_TRIES = 10_000  # candidates for phone numbers in one text

_ADDRESS = re.compile(
    r"(?<![\w.+%&-])(?!git@)\w[\w.+%&'-]{0,63}@(?!\d[\w-]*\.(?:png|jpe?g|gif|webp|heic|pdf|mp[34])\b)"  # photo@2x.png
    r"(?:(?:[^\W_]|-){1,63}\.)+(?:xn--[a-z0-9-]{1,59}|[^\W\d_]{2,24})"
)
# International numbers: with a plus, as WhatsApp mentions and links, or with 00 and in groups.
_MENTION = re.compile(r"(?:(?<!\w)@|(?<=wa\.me)/)(?=\d{10,15}(?!\w))")
_PLUS = re.compile("[+＋]")
_PREFIX = re.compile(r"(?<![\w.,:/+-])00(?=[1-9]\d{0,2}[ \u00a0(-])")
_TELLS_COUNTRY = re.compile(r"[+＋@/]\(?\d|(?<!\w)00[1-9]")
_SEVERAL_DIGITS = re.compile(r"\d(?:\D{0,3}\d){5}")
# Not phone numbers: parts of longer numbers, paths or names; money; numbers after words such as "order".
_MONEY = r"[$€£¥]|(?<![^\W_])(?:kr|nok|sek|dkk|usd|eur|gbp|chf)\b"
_BEFORE = re.compile(rf"(?:[#/_=]|\w-|(?<!\d)\d{{1,4}}[.,:]|(?:{_MONEY})\.?\s?)\Z", re.IGNORECASE)
_SUM = re.compile(rf"\s?(?:%|,-|{_MONEY})", re.IGNORECASE)
_AFTER = re.compile(r"[.,:]\d{1,3}(?!\d)|[/_=]|-\w")
_JOINS = re.compile(r"[\w)]")  # a number to the word before it
_CALLED = re.compile(r"\b(?:isbn|issn|ean|doi|order|invoice|ticket|ref|id)[\s:#.]{0,3}\Z", re.IGNORECASE)
_FEW_DIGITS = 7  # in a number without its country: fewer are rare, and common in sums and years
_DAY = re.compile(  # the year first or last, with any signs between; or a span of years
    r"(?:19|20)\d\d(\D?)(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01])"
    r"|(?:0?[1-9]|[12]\d|3[01])(\D?)(?:0?[1-9]|1[0-2])\2(?:19|20)\d\d"
    r"|(?:1\d|20)\d\d\s?\D\s?(?:1\d|20)\d\d"
)
_ODD_GROUPS = re.compile(r"\D\d\Z|\A\d[.,]\d+\Z")  # a single digit at the end, or a decimal
_LOOK_BACK = 12  # characters that _BEFORE and _CALLED can match


def require_region(region: str | None) -> None:
    """Raise ``MissingExtra`` without phonenumbers, and ``InvalidInput`` for an unknown region."""
    try:
        import phonenumbers
    except ImportError as error:
        raise MissingExtra("redacting", "redact") from error
    if region is not None and region not in phonenumbers.SUPPORTED_REGIONS:
        raise InvalidInput(f"redact_region must be a two-letter region such as NO or US, got {region!r}")


class Redactor:
    """Redacts the records of one part in order; ``counts`` counts the redactions by kind."""

    def __init__(self, region: str | None, counts: Counter[str]) -> None:
        self._region = region
        self._counts = counts
        self._kinds: list[str] = []  # of private data in the current record
        self._keys = ContentKeys()
        self._file = ("", "")  # the last file name and its redacted form: the next record has mostly the same

    def text(self, text: str) -> str:
        """Return a text with private data redacted."""
        return self._without(text, _mark, is_name=False)

    def file(self, name: str) -> str:
        """Return a file name with private data redacted."""
        if self._file[0] != name:
            self._file = (name, self.text(name)[:MAX_NAME])
        return self._file[1]

    def rejected(self, record: Rejected) -> Rejected:
        """Return a rejected record with private data redacted."""
        changed = {"file": self.file(record.file), "reason": self.text(record.reason)}
        return record.model_copy(update={**changed, "position": self._name(record.position)})

    def event(self, event: Event, *, counted: bool = True) -> Record:
        """Return the redacted event, the same object if nothing changed, or a rejection if the result is invalid."""
        self._kinds.clear()
        cleaned = self._event(event)
        if counted:
            self._counts.update(self._kinds)
        return cleaned

    def _event(self, event: Event) -> Record:
        original: dict[str, Any] = {name: getattr(event, name) for name in Event.model_fields}
        changed = original | {
            "content": self.text(event.content),
            "title": self._or_none(self.text, event.title),
            "speaker": self._or_none(self.text, event.speaker),
            "payload": self._value(event.payload),
            "metadata": self._value(event.metadata),
        }
        count = len(self._kinds)
        changed["session"] = self._or_none(self._name, event.session)
        changed["external_id"] = self._or_none(self._name, event.external_id)
        changed["source"] = self._source(event.source)
        del self._kinds[count:]  # names repeat with every event, so they are not counted
        if changed == original:
            return event
        if changed["external_id"] != event.external_id and MARK.search(changed["external_id"]):
            dated = event.occurred_at is not None
            key_parts = changed["session"], changed["speaker"], changed["content"]
            changed["external_id"] = None if dated else self._keys.key(*key_parts)
        cleaned = event.model_copy(update=changed)
        try:
            return checked(cleaned)
        except InvalidEvent as error:  # marks can be longer than the redacted text
            return rejected(cleaned.source or Source(file=""), str(error))

    def _name(self, name: str) -> str:
        return self._without(name, _in_name, is_name=True)[:MAX_NAME]

    def _or_none(self, clean: Callable[[str], str], text: str | None) -> str | None:
        return None if text is None else clean(text)

    def _source(self, source: Source | None) -> Source | None:
        if source is None:
            return None
        return Source(file=self.file(source.file), position=self._or_none(self._name, source.position))

    def _value(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(inner) for inner in value]
        if not isinstance(value, dict):
            return value
        return {name: self._value(inner) for _, name, inner in map_keys(value, self.text)}

    def _without(self, text: str, replacement: Callable[[str, str], str], *, is_name: bool) -> str:
        for find in (_keys, _addresses, self._phones):
            matches = list(find(text, is_name))
            if matches:
                self._kinds += [match.kind for match in matches]
                text = without(text, matches, replacement)
        return text

    def _phones(self, text: str, is_name: bool) -> Iterator[Secret]:
        if _SEVERAL_DIGITS.search(text) is None:
            return
        spans: list[tuple[int, int]] = []
        if _TELLS_COUNTRY.search(text) is not None:
            # With as many characters, so that places stay the same.
            plus = _PREFIX.sub(" +", _MENTION.sub("+", text))
            for match in _matches(plus, None):
                linked = text[match.start] == "/"  # to WhatsApp
                if _names_country(plus, match, linked):
                    before = text[match.start - 1 : match.start + 1] == "00"
                    spans.append((match.start - before + linked, match.end))
        if self._region is not None:
            # Without the numbers that are found already: each costs as much again.
            rest = without(text, [Secret(PHONE, *span) for span in spans], lambda _, number: "x" * len(number))
            for match in _matches(rest, self._region):
                if not _PLUS.search(match.raw_string) and _is_phone(text, match, is_name):
                    spans.append((match.start, match.end))
        yield from (Secret(PHONE, *span) for span in sorted(spans))


def _matches(text: str, region: str | None) -> Iterator[PhoneNumberMatch]:
    """Yield valid numbers of a region, or without a region possible international numbers."""
    from phonenumbers import Leniency, PhoneNumberMatcher

    leniency = Leniency.POSSIBLE if region is None else Leniency.VALID
    matches: Iterator[PhoneNumberMatch] = iter(PhoneNumberMatcher(text, region, leniency, _MAX_TRIES))
    return matches


def _names_country(text: str, match: PhoneNumberMatch, linked: bool) -> bool:
    """Return whether a match is an international number and not a sum; a short one must be valid."""
    import phonenumbers

    joined = not linked and _JOINS.match(text, match.start - 1) if match.start else False
    if joined or _SUM.match(text, match.end):
        return False
    is_short = (match.number.national_number or 0) < 10 ** (_FEW_DIGITS - 1)  # unless it begins with zeros
    if is_short and len(phonenumbers.national_significant_number(match.number)) < _FEW_DIGITS:
        return bool(phonenumbers.is_valid_number(match.number))
    possible = phonenumbers.is_possible_number_with_reason(match.number)
    return bool(possible == phonenumbers.ValidationResult.IS_POSSIBLE)


def _is_phone(text: str, match: PhoneNumberMatch, is_name: bool) -> bool:
    before = (text, max(0, match.start - _LOOK_BACK), match.start)
    if _BEFORE.search(*before) or _AFTER.match(text, match.end) or _SUM.match(text, match.end):
        return False
    digits_text = match.raw_string.strip("() ")
    if digits_text.isdecimal() and (is_name or _CALLED.search(*before)):
        return False
    if match.number.extension is None and _ODD_GROUPS.search(digits_text):
        return False
    return sum(map(str.isdecimal, digits_text)) >= _FEW_DIGITS and _DAY.fullmatch(digits_text) is None


def _keys(text: str, is_name: bool) -> Iterator[Secret]:
    for kind, start, end in secrets_in(text):
        if not (is_name and kind == CARD_NUMBER and text[start:end].isdecimal()):
            yield Secret({CARD_NUMBER: CARD, IBAN: ACCOUNT}.get(kind, KEY), start, end)


def _addresses(text: str, is_name: bool) -> Iterator[Secret]:
    if "@" in text:
        yield from (Secret(MAIL, *match.span()) for match in _ADDRESS.finditer(text))


def _mark(kind: str, text: str) -> str:
    return f"[{kind}]"


def _in_name(kind: str, text: str) -> str:
    if kind != MAIL:
        return _mark(kind, text)
    digest = hashlib.blake2b(text.casefold().encode(), digest_size=_HASH_BYTES, person=b"zettel.address")
    return f"[{MAIL} {digest.hexdigest()}]"
