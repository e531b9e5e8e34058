"""Finds secrets of known shapes in texts: keys, tokens, passwords, card and account numbers.

``secret_shapes.tsv`` has the shapes; card numbers and IBANs have check digits, and are found here. A search for fixed
words rules out most patterns for most texts. A secret of no known shape, such as a password alone in its line, is not
found.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple, TypeAlias

CARD, IBAN = "card number", "IBAN"
"""Kinds of numbers with check digits."""
MARK = "redacted"
"""The first word of what replaces a secret, as in ``[redacted GitHub token]``."""

_FRAGMENTS = {
    "<START>": r"(?<![\w-])",  # not inside a longer word, such as risk-
    "<END>": r"(?![\w-])",
    "<IS>": r"[\"'`]?\s{0,3}(?::=|=>|[=:])\s{0,3}[\"'`]?",
    "<UNMARKED>": rf"(?!\[(?:{MARK}|key|card|phone|e-mail)\b)",
    "<DUMMY>": r"(?!(?i:your|my[_-]|example|dummy|test|xxx|change|placeholder|\.\.\.|<|\{|\$|%|\*|\[))",
    "<OF>": "(?i:{})".format(  # fixed width, as a lookbehind must be
        "|".join(
            f"(?<={word})|(?<={word}[_ -])"
            for word in (
                "access", "admin", "api", "app", "auth", "bot", "client", "consumer", "encryption", "master", "private",
                "refresh", "secret", "service", "signing", "webhook",
            )
        )
    ),
    "<PASSWORD>": (
        "(?:passw(?:or)?d|passwd|pwd|passphrase|passcode|passwort|kennwort|passord|lösenord|adgangskode|wachtwoord"
        "|contrase[ñn]a|mot de passe|senha|has[łl]o|пароль)"
    ),
    "<PASSWORD MARKS>": (
        "passw|pwd|passphrase|passcode|kennwort|passord|lösenord|adgangskode|wachtwoord|contrase|mot de passe|senha"
        "|hasło|haslo|пароль"
    ),
}  # fmt: skip
_GAP = "[ \u00a0\u202f-]"
_CARD = re.compile(
    r"(?<!\w)(?<!\d[.,/:-])(?:"
    rf"6\d{{3}}({_GAP}?)\d{{4}}\1\d{{4}}\1\d{{4}}\1\d{{3}}"  # 19 digits, as UnionPay's
    rf"|(?:[46]\d|5[0-8]|2[2-7]|35)\d\d({_GAP}?)\d{{4}}\2\d{{4}}\2\d{{4}}"  # 16
    rf"|3[47]\d{{2}}({_GAP}?)\d{{6}}\3\d{{5}}"  # American Express
    rf"|3[0689]\d{{2}}({_GAP}?)\d{{6}}\4\d{{4}}"  # Diners Club
    r")(?!\w)(?![.,/:-]\d)"
)
_CALLED = re.compile(
    r"(?<![^\W_])(?:order|invoice|ticket|tracking|parcel|isbn|id|ref)[\"'\s:#.=]{0,4}\Z", re.IGNORECASE
)  # other numbers of as many digits
_LOOK_BACK = 14  # characters that _CALLED can match
_FOUR_DIGITS = re.compile(r"\d\d\d\d")
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])")
_IBAN_LENGTHS = {
    length: frozenset(countries.split())
    for length, countries in {
        15: "NO", 16: "BE", 18: "DK FI FO GL NL", 19: "MK SI", 20: "AT BA EE LT LU XK", 21: "CH HR LI LV",
        22: "BG DE GB GE IE ME RS", 23: "AE IL", 24: "AD CZ ES MD PK RO SA SE SK TN", 25: "PT", 26: "IS TR",
        27: "FR GR IT MC SM", 28: "AL AZ CY DO HU LB PL", 29: "BR UA", 30: "JO KW MU QA", 31: "MT",
    }.items()
}  # fmt: skip
"""Countries by the length of their account numbers (SWIFT's IBAN registry)."""


_RAREST_FIRST = "парольłö~$=/:_0123456789QXZJKVUYGWFPLBRDHOMNECIASTqzxjkvb-.wpgfymcuhdlr oasitne"


class Secret(NamedTuple):
    """Kind and place of a secret in a text: ``text[start:end]``."""

    kind: str
    start: int
    end: int


class SecretShape(NamedTuple):
    """One row of the table; a match begins ``back`` characters before one of the ``marks``, fewest last."""

    kind: str
    back: range
    marks: tuple[str, ...]
    pattern: str

    def find(self, text: str, words: str, mark: str) -> Iterator[Secret]:
        """Yield the secrets of this shape at a mark in ``words``: the text, or as long a text in lower case."""
        pattern = _compiled(self.pattern)
        group = pattern.groupindex.get("secret", min(pattern.groups, 1))
        if not mark:
            yield from (Secret(self.kind, *match.span(group)) for match in pattern.finditer(text))
            return
        place = words.find(mark)
        while place >= 0:
            starts = (place - back for back in self.back if back <= place)
            match = next(filter(None, (pattern.match(text, start) for start in starts)), None)
            if match is not None:
                yield Secret(self.kind, *match.span(group))
            place = words.find(mark, max(place + 1, match.end() if match else 0))


@cache
def secret_shapes() -> tuple[SecretShape, ...]:
    """Return the table of shapes."""
    rows = (files(__package__) / "secret_shapes.tsv").read_text(encoding="utf-8").splitlines()
    shapes = []
    for row in rows:
        if not row.startswith("#"):
            for name, fragment in _FRAGMENTS.items():
                row = row.replace(name, fragment)
            kind, back, marks, pattern = row.split("\t")
            least, _, most = back.partition("-")
            starts = range(int(most or least), int(least) - 1, -1)
            shapes.append(SecretShape(kind, starts, tuple(marks.split("|")), pattern))
    return tuple(shapes)


def secrets_in(text: str) -> list[Secret]:
    """Return the secrets in a text, in order and without overlaps. Takes linear time.

    Example: ``secrets_in("The PIN is 4711.")`` returns ``[Secret("PIN", 11, 15)]``.
    """
    lowered = text.lower()
    if len(lowered) != len(text):  # of a few capital letters, the small one is two characters
        lowered = "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
    found = [*_numbers(text)]
    for words, gates in zip((text, lowered), _gates(), strict=True):
        for gate, marks in gates:
            if gate in words:
                for mark, shape in marks:
                    if mark in words:
                        found += shape.find(text, words, mark)
    if len(found) > 1:  # of those that overlap, the first and longest
        found.sort(key=lambda secret: (secret.start, -secret.end))
        apart: list[Secret] = []
        for secret in found:
            if not apart or secret.start >= apart[-1].end:
                apart.append(secret)
        return apart
    return found


def is_valid_card(digits: str) -> bool:
    """Return whether the Luhn check digit (ISO/IEC 7812-1) is right."""
    doubled = (divmod(2 * int(digit), 10) for digit in digits[-2::-2])
    return (sum(map(sum, doubled)) + sum(map(int, digits[-1::-2]))) % 10 == 0


def is_valid_iban(text: str) -> bool:
    """Return whether length and check digits (ISO 13616) of an account number without blanks are right."""
    if text[:2] not in _IBAN_LENGTHS.get(len(text), ()):
        return False
    return int("".join(str(int(character, 36)) for character in text[4:] + text[:4])) % 97 == 1


def _numbers(text: str) -> Iterator[Secret]:
    if _FOUR_DIGITS.search(text) is None:
        return
    for match in _CARD.finditer(text):
        digits = re.sub(r"\D", "", match.group())
        is_other = digits == match.group() and _CALLED.search(text, max(0, match.start() - _LOOK_BACK), match.start())
        if not is_other and is_valid_card(digits):
            yield Secret(CARD, *match.span())
    for match in _IBAN.finditer(text):
        # The next word may look like the end of the number: its length follows from the country.
        for length, countries in _IBAN_LENGTHS.items():
            if match.group()[:2] in countries:
                end = _end_of(match.group(), length)
                if end and is_valid_iban(match.group()[:end].replace(" ", "")):
                    yield Secret(IBAN, match.start(), match.start() + end)


def _end_of(text: str, count: int) -> int:
    """Return the end of the first ``count`` characters that are not blanks, or 0 if there are fewer."""
    for end, character in enumerate(text, 1):
        count -= character != " "
        if not count:
            return end
    return 0


_Gates: TypeAlias = tuple[tuple[str, tuple[tuple[str, SecretShape], ...]], ...]


@cache
def _gates() -> tuple[_Gates, _Gates]:
    """Return the marks with their shapes: those to find in the text, and those to find in the text in lower case.

    They are grouped by the rarest character of the mark, because most texts lack most of these.
    """
    groups: tuple[dict[str, list[tuple[str, SecretShape]]], ...] = (defaultdict(list), defaultdict(list))
    for shape in secret_shapes():
        for mark in shape.marks:
            groups[mark.islower()][min(mark, key=_RAREST_FIRST.index, default="")].append((mark, shape))
    exact, lowered = (tuple((gate, tuple(marks)) for gate, marks in group.items()) for group in groups)
    return exact, lowered


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
