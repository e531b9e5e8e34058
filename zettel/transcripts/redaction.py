"""What is private is taken out of records before anything of them is stored: e-mail addresses, phone numbers, card
numbers and keys give way to ``[e-mail]``, ``[phone]``, ``[card]`` and ``[key]``.

What a phone number is, Google's libphonenumber knows, in the Python of ``phonenumbers`` (extra ``redact``). It is asked
only about texts that may hold one, for a question takes it longer than all else here.

Names that records are known by, ids and sessions, must stay different where they differ. In them an address, as mails'
ids look like one, gives way to a short hash of it; an id that holds more than that is dropped, and its record known by
what is left of it. There, digits in one piece are a number of somebody's database.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import JsonValue

from zettel.arguments import checked
from zettel.errors import InvalidEvent, InvalidInput, MissingExtra
from zettel.model import MAX_NAME, Event, Source

from . import Record, Rejected
from .records import ContentKeys
from .secret_shapes import secrets_in

if TYPE_CHECKING:
    from phonenumbers import PhoneNumberMatch

MAIL, PHONE, CARD, KEY = "e-mail", "phone", "card", "key"
"""What is taken out, as reports and the marks in its place call it."""
MARK = re.compile(rf"\[(?:{MAIL}|{PHONE}|{CARD}|{KEY})\]")
"""What stands in place of something that was taken out."""

_HASH_BYTES = 6  # of an address in a name: no two of one mailbox are alike
_MOST_TRIES = 10_000  # candidates for phone numbers in one text: a million characters can hold as many

_ADDRESS = re.compile(
    r"(?<![\w.+%&-])(?!git@)\w[\w.+%&'-]{0,63}@(?!\d[\w-]*\.(?:png|jpe?g|gif|webp|heic|pdf|mp[34])\b)"  # photo@2x.png
    r"(?:(?:[^\W_]|-){1,63}\.)+(?:xn--[a-z0-9-]{1,59}|[^\W\d_]{2,24})"
)
_GAP = "[ \u00a0\u202f-]"
_CARD = re.compile(
    r"(?<!\w)(?<!\d[.,/:-])(?:"
    rf"6\d{{3}}({_GAP}?)\d{{4}}\1\d{{4}}\1\d{{4}}\1\d{{3}}"  # 19 digits, as UnionPay's
    rf"|(?:[46]\d|5[0-8]|2[2-7]|35)\d\d({_GAP}?)\d{{4}}\2\d{{4}}\2\d{{4}}"  # 16
    rf"|3[47]\d{{2}}({_GAP}?)\d{{6}}\3\d{{5}}"  # American Express
    rf"|3[0689]\d{{2}}({_GAP}?)\d{{6}}\4\d{{4}}"  # Diners Club
    r")(?!\w)(?![.,/:-]\d)"
)
# A number that tells its country: with a plus, as WhatsApp mentions people and links to them, or with 00 and in groups.
_MENTION = re.compile(r"(?:(?<!\w)@|(?<=wa\.me)/)(?=\d{10,15}(?!\w))")
_PLUS = re.compile("[+＋]")
_PREFIX = re.compile(r"(?<![\w.,:/+-])00(?=[1-9]\d{0,2}[ \u00a0(-])")
_TELLS_COUNTRY = re.compile(r"[+＋@/]\(?\d|(?<!\w)00[1-9]")
_SEVERAL_DIGITS = re.compile(r"\d(?:\D{0,3}\d){5}")
# What a number is not: a part of a longer one, of a path or a name; money; what the word before it calls otherwise.
_MONEY = r"[$€£¥]|(?<![^\W_])(?:kr|nok|sek|dkk|usd|eur|gbp|chf)\b"
_BEFORE = re.compile(rf"(?:[#/_=]|\w-|(?<!\d)\d{{1,4}}[.,:]|(?:{_MONEY})\.?\s?)\Z", re.IGNORECASE)
_SUM = re.compile(rf"\s?(?:%|,-|{_MONEY})", re.IGNORECASE)
_AFTER = re.compile(r"[.,:]\d{1,3}(?!\d)|[/_=]|-\w")
_CALLED = re.compile(r"\b(?:isbn|issn|ean|doi|order|invoice|ticket|ref|id)[\s:#.]{0,3}\Z", re.IGNORECASE)
_FEW_DIGITS = 7  # in a number without its country: fewer are rare, and common in sums and years
_DAY = re.compile(  # the year first or last, with any signs between; or a span of years
    r"(?:19|20)\d\d(\D?)(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01])"
    r"|(?:0?[1-9]|[12]\d|3[01])(\D?)(?:0?[1-9]|1[0-2])\2(?:19|20)\d\d"
    r"|(?:1\d|20)\d\d\s?\D\s?(?:1\d|20)\d\d"
)
_ODD_GROUPS = re.compile(r"\D\d\Z|\A\d[.,]\d+\Z")  # nobody ends a number with a digit alone; and a decimal
_LOOK_BACK = 12  # characters that _BEFORE and _CALLED can take


def require_region(region: str | None) -> None:
    """Raises ``MissingExtra`` without phonenumbers, and ``InvalidInput`` for a region that it does not know."""
    try:
        import phonenumbers
    except ImportError as error:
        raise MissingExtra("redacting", "redact") from error
    if region is not None and region not in phonenumbers.SUPPORTED_REGIONS:
        raise InvalidInput(f"redact_region={region!r} is no region: two capital letters, such as NO or US")


class _Found(NamedTuple):
    kind: str
    start: int
    end: int


class Redactor:
    """Takes what is private out of the records of one part, in their order; ``counts`` tells how often which."""

    def __init__(self, region: str | None, counts: Counter[str]) -> None:
        self._region = region
        self._counts = counts
        self._found: list[str] = []  # kinds, in the record at hand
        self._keys = ContentKeys()
        self._file = ("", "")  # the last one, which is mostly the next one too, and what is left of it

    def text(self, text: str) -> str:
        """A text without what is private in it."""
        return self._without(text, _mark, is_name=False)

    def file(self, name: str) -> str:
        """A file's name without it."""
        if self._file[0] != name:
            self._file = (name, self.text(name)[:MAX_NAME])
        return self._file[1]

    def rejected(self, record: Rejected) -> Rejected:
        """What is told of a record that cannot be stored, without it."""
        told = {"file": self.file(record.file), "reason": self.text(record.reason)}
        return record.model_copy(update={**told, "position": self._name(record.position)})

    def event(self, event: Event, *, counted: bool = True) -> Record:
        """An event without it, the same one if there is none; rejected if that is no event any more."""
        self._found.clear()
        cleaned = self._event(event)
        if counted:
            self._counts.update(self._found)
        return cleaned

    def _event(self, event: Event) -> Record:
        given: dict[str, Any] = {name: getattr(event, name) for name in Event.model_fields}
        changed = given | {
            "content": self.text(event.content),
            "title": self._or_none(self.text, event.title),
            "role": self._or_none(self.text, event.role),
            "payload": self._value(event.payload),
            "metadata": self._value(event.metadata),
        }
        found = len(self._found)
        changed["session"] = self._or_none(self._name, event.session)
        changed["id"] = self._or_none(self._name, event.id)
        changed["source"] = self._source(event.source)
        del self._found[found:]  # names are told with each event, and count for none
        if changed == given:
            return event
        if changed["id"] != event.id and MARK.search(changed["id"]):
            dated = event.occurred_at is not None
            changed["id"] = None if dated else self._keys.key(changed["session"], changed["role"], changed["content"])
        cleaned = event.model_copy(update=changed)
        try:
            return checked(cleaned)
        except InvalidEvent as error:  # marks are longer than what they stand for, and the content was at its limit
            source = cleaned.source or Source(file="")
            return Rejected(file=source.file, position=source.position or "", reason=str(error))

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
        cleaned: dict[str, JsonValue] = {}
        for key, inner in value.items():
            name = told = self.text(key)
            nth = 1
            while name in cleaned:  # two addresses as keys are still two
                nth += 1
                name = f"{told} {nth}"
            cleaned[name] = self._value(inner)
        return cleaned

    def _without(self, text: str, stand_in: Callable[[str, str], str], *, is_name: bool) -> str:
        for find in (_keys, _addresses, _cards, self._phones):
            found = list(find(text, is_name))
            if found:
                self._found += [one.kind for one in found]
                parts, end = [], 0
                for kind, start, stop in found:
                    parts += [text[end:start], stand_in(kind, text[start:stop])]
                    end = stop
                text = "".join((*parts, text[end:]))
        return text

    def _phones(self, text: str, is_name: bool) -> Iterator[_Found]:
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
            for match in _matches(text, self._region):
                taken = any(start < match.end and match.start < end for start, end in spans)
                if not taken and not _PLUS.search(match.raw_string) and _is_phone(text, match, is_name):
                    spans.append((match.start, match.end))
        yield from (_Found(PHONE, *span) for span in sorted(spans))


def _matches(text: str, region: str | None) -> Iterator[PhoneNumberMatch]:
    """Of a region those that are numbers there; without one those that tell their country and are as long as there."""
    from phonenumbers import Leniency, PhoneNumberMatcher

    leniency = Leniency.POSSIBLE if region is None else Leniency.VALID
    matches: Iterator[PhoneNumberMatch] = iter(PhoneNumberMatcher(text, region, leniency, _MOST_TRIES))
    return matches


def _names_country(text: str, match: PhoneNumberMatch, linked: bool) -> bool:
    """Whether it is a number with its country, and no sum: one of few digits must be in use there."""
    import phonenumbers

    joined = not linked and re.match(r"[\w)]", text[max(0, match.start - 1) : match.start])
    if joined or _SUM.match(text, match.end):
        return False
    if len(phonenumbers.national_significant_number(match.number)) < _FEW_DIGITS:
        return bool(phonenumbers.is_valid_number(match.number))
    possible = phonenumbers.is_possible_number_with_reason(match.number)
    return bool(possible == phonenumbers.ValidationResult.IS_POSSIBLE)


def _is_phone(text: str, match: PhoneNumberMatch, is_name: bool) -> bool:
    before = (text, max(0, match.start - _LOOK_BACK), match.start)
    if _BEFORE.search(*before) or _AFTER.match(text, match.end) or _SUM.match(text, match.end):
        return False
    told = match.raw_string.strip("() ")
    if told.isdecimal() and (is_name or _CALLED.search(*before)):
        return False
    if match.number.extension is None and _ODD_GROUPS.search(told):
        return False
    return sum(map(str.isdecimal, told)) >= _FEW_DIGITS and _DAY.fullmatch(told) is None


def _keys(text: str, is_name: bool) -> Iterator[_Found]:
    end = 0
    for _, match in sorted(secrets_in(text), key=lambda found: found[1].start()):
        if match.start() >= end:
            end = match.end()
            yield _Found(KEY, match.start(), end)


def _addresses(text: str, is_name: bool) -> Iterator[_Found]:
    if "@" in text:
        yield from (_Found(MAIL, *match.span()) for match in _ADDRESS.finditer(text))


def _cards(text: str, is_name: bool) -> Iterator[_Found]:
    for match in _CARD.finditer(text):
        digits = re.sub(r"\D", "", match.group())
        if _luhn(digits) and not (is_name and digits == match.group()):
            yield _Found(CARD, *match.span())


def _luhn(digits: str) -> bool:
    """Whether the last digit checks the others, as ISO/IEC 7812-1 has it for cards."""
    doubled = (divmod(2 * int(digit), 10) for digit in digits[-2::-2])
    return (sum(map(sum, doubled)) + sum(map(int, digits[-1::-2]))) % 10 == 0


def _mark(kind: str, found: str) -> str:
    return f"[{kind}]"


def _in_name(kind: str, found: str) -> str:
    if kind != MAIL:
        return _mark(kind, found)
    digest = hashlib.blake2b(found.casefold().encode(), digest_size=_HASH_BYTES, person=b"zettel.address")
    return f"[{MAIL} {digest.hexdigest()}]"
