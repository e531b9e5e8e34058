"""Decides from the words around a date without a year whether the date is past or future. English only.

"We married on 14 June" is past, and "we are marrying on 14 June" is future. The nearest verb decides: first verbs of
the same clause, then of the sentence, then of the text, and verbs before the date first. A present verb is a plan: "the
course starts on 3 May".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BEFORE_INFINITIVE = {"", "to", "will", "can", "could", "you", "don't", "should", "must", "please", "and", "or"}
_BE = _words("am are aren't be being he's here's i'm is isn't it's she's that's there's what's when's where's who's")
_HAVE = _words("has hasn't have haven't i've they've we've who've you've")
_GET = _words("get gets getting having")
_PAST = _words("""
    ate became been began begun bent bit bitten blew blown born bought bred broke broken brought built burnt came
    caught chose chosen clung crept dealt did didn't done drank drawn dreamt drew driven drove drunk dug eaten
    fallen fed fell felt fled flew flown forgot forgotten fought found froze frozen gave given gone got gotten grew
    grown had hadn't heard held hid hidden hung kept knelt knew known laid led left lent lit lost made meant met
    paid ran rang ridden rode rose rung said sang sank sat saw seen sent sewn shaken shone shook shot shown shrank
    slept slid snuck sold spent spilt spoke spoken sprang stank stole stolen stood struck stuck stung sung sunk swam
    swept swore swung taken taught thought threw thrown told took tore torn understood was wasn't went wept were
    weren't woke woken won wore worn written wrote""")
_UNCHANGED = _words("beat bet burst cast cost cut hit hurt let put quit read set shut split spread")
"""Verbs whose past looks like their present."""
_NOT_PAST = _words("""
    breed exceed feed hundred indeed kindred naked need proceed sacred seed shred speed succeed weed wicked""")
"""Words that only look like the past."""
_BOOKED = _words("""
    agreed arranged booked decided enrolled invited organised organized pencilled planned promised registered
    reserved scheduled signed""")
"""Past verbs that plan something: "booked a table for 14 June"."""
_MOVED = _words("""
    bought brought changed confirmed delayed extended fixed got left moved postponed pushed put rescheduled set
    shifted""")
"""Past verbs that plan something if "for", "to" or "until" precedes the date: "moved the party to 14 June"."""
_PLANS = _words("""
    appear arrive arrives begin begins celebrates changes closes comes deadline depart departs do does
    doesn't don't due ends expects expire expires expiry falls finishes flies fly gets gives go goes going gonna
    graduates hands heads hope hopes hoping hosts intends joins kicks lands lapses lasts launches leave leaves
    marries matures meet meets might moves must needs opens pays performs picks plan planning plans plays premieres
    presents remind reminder reopen reopens resume resumes retires returns runs sails sees shall should sings soon
    speaks starts stays stops switches takes teaches tomorrow travels turns upcoming visits wants will won't""")
_REQUESTS = _words("add book bring buy call cancel collect order pack plan renew reserve schedule")
"""Imperatives at the start of a sentence."""
_UNDERWAY = _words("coming doing finishing flying getting going having leaving marrying moving starting taking turning")
"""Participles after a name and "'s"."""
_WE = _words("i they we you")
_SHE = _words("he it she that which who")
_DETERMINERS = _words("a an her his its my our the their this your")
_DEFINITE = _DETERMINERS - {"a", "an"} | {"that", "those"}
_AFTER_SUBJECT = _words("""
    and at both but by can't cannot could couldn't find for from in kind of on or that to who with would wouldn't""")
"""Words after a subject that are not present verbs, or verbs that look for something."""
_ADVERBS = _words("all already also always both even ever finally just never not now once only really so still then")
_TO_DATE = _words("for till to until")
_TICKETS = _words("appointment booking flight flights reservation seats slot ticket tickets")
"""Things that people buy or get for a later day."""
_TIME_PREPOSITIONS = _words("at back by during in last on since this")
_ARRANGED = _words("arranged booked reserved scheduled")
"""Past verbs that plan something if a day follows without a preposition: "booked the Azores, 14 June"."""

_AROUND = 300
"""Characters to examine before and after a date."""
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_SENTENCE_END = re.compile(r"[!?;\n]|\.(?=\s|$)")
_CLAUSE_END = re.compile(r"[,:()\u2013\u2014]|\s-\s|\b(?:but|and|so|because|as|that|which|who|while|when)\b")
_PART = r"(?:(?:the\s)?(?:end|start|beginning|middle|rest)\sof\s|mid[\s-]|early\s|late\s)?(?:the\s)?"
_SINCE = re.compile(
    rf"\bsince\s(?:about\s|around\s|(?:the|my|our|his|her|their)\s(?:\w+\s){{1,2}}(?:on|in)\s)?{_PART}$"
)
_BY = re.compile(rf"\b(?:by|until|till)\s{_PART}$")
_RECORDS = (
    r"(?:invoice|receipt|bill|letter|e-?mail|message|note|minutes|photo|picture|video|recording|statement|report|results?"
    r"|scan|transcript|log|entry|payment|screenshot|backup)s?"
)
_OF_DAY = r"(?<!end\s)(?<!start\s)(?<!beginning\s)(?<!middle\s)(?<!rest\s)(?<!week\s)(?<!weekend\s)(?<!month\s)\bof"
_DATED = re.compile(rf"(?:\b{_RECORDS}\sfrom|dated|{_OF_DAY})\s(?:the\s)?$")
""" "The letter of 12 April"."""
_OF_RECORD = re.compile(rf"\s(?:[a-z]+\s)?{_RECORDS}\b")
""" "The 12 April letter"."""
_RECORD = re.compile(rf"\b(?:{_RECORDS}|paid|total|error|warning|info|debug)\b")
_APPOINTMENT = re.compile(r"\b(?:appointment|booking|reservation|next)\b")


def direction_at(text: str, start: int, end: int) -> int:
    """Return -1 if the date at ``text[start:end]`` is past, 1 if it is future, 0 if no word decides.

    ``text`` is in lower case.
    """
    shift = max(start - _AROUND, 0)
    text = text[shift : end + _AROUND].replace("\u2019", "'")
    start, end = start - shift, end - shift
    left, right = _around(_SENTENCE_END, text, start, end, 0, len(text))
    if _SINCE.search(text, left, start) or _DATED.search(text, left, start) or _OF_RECORD.match(text, end, right):
        return -1
    before = _votes(text[left:start])
    if _BY.search(text, left, start) and any(before):
        return 1 if 1 in before else -1
    clause_left, clause_right = _around(_CLAUSE_END, text, start, end, left, right)
    return (
        _first(reversed(_votes(text[clause_left:start])))
        or _first(_votes(text[end:clause_right]))
        or _first(reversed(before))
        or _first(_votes(text[end:right]))
        or _opening(text[left:start])
        or (1 if _APPOINTMENT.search(text, left, right) else -1 if _RECORD.search(text, left, right) else 0)
        or _first(reversed(_votes(text[:left])))
        or _first(_votes(text[right:]))
    )


def _around(boundary: re.Pattern[str], text: str, start: int, end: int, left: int, right: int) -> tuple[int, int]:
    """Return the bounds of the part of ``text[left:right]`` with the date, which lies between two boundaries."""
    for match in boundary.finditer(text, left, start):
        left = match.end()
    after = boundary.search(text, end, right)
    return left, after.start() if after else right


def _first(votes: Iterator[int] | Sequence[int]) -> int:
    return next((vote for vote in votes if vote), 0)


def _opening(text: str) -> int:
    """Return 1 if a sentence begins with a participle or a request: "flying back on", "book a table for"."""
    words = _WORD.findall(text)
    return 1 if words and (words[0] in _REQUESTS or (len(words[0]) > 4 and words[0].endswith("ing"))) else 0


def _votes(text: str) -> list[int]:
    """Return -1 for each word of the past, 1 for each word of the present and future, 0 for the others."""
    words = _WORD.findall(text)
    return [_vote(words, place) for place in range(len(words))]


def _vote(words: list[str], place: int) -> int:
    word, rest = words[place], words[place + 1 :]
    last = place - 1
    while last >= 0 and (words[last] in _ADVERBS or (words[last].endswith("ly") and len(words[last]) > 4)):
        last -= 1
    before = words[last] if last >= 0 else ""
    if word in _PAST or word in _UNCHANGED or _is_regular_past(word):
        return _past_vote(words, place, before)
    if word.endswith("'s") and rest and rest[0] in _UNDERWAY:
        return 1
    if word in _BE or word in _HAVE or word.endswith(("'ll", "'re")) or before.endswith("'d"):
        return 1
    if word in _PLANS:
        return 1 if before != "to" else 0
    if word in ("find", "dig") and _DEFINITE.intersection(rest[:2]):
        return -1
    if before in _WE and "did" not in words[max(place - 3, 0) : place]:
        if word == "remember":
            return -1
        return 1 if word not in _AFTER_SUBJECT and word not in _ADVERBS and not word.endswith("ly") else 0
    return 1 if before in _SHE and word.endswith("s") else 0


def _is_regular_past(word: str) -> bool:
    return len(word) > 3 and word.endswith("ed") and word not in _NOT_PAST


def _past_vote(words: list[str], place: int, before: str) -> int:
    word, rest = words[place], words[place + 1 :]
    if before == "had" or before.endswith("'d"):
        return -1
    if word in _BOOKED and _TO_DATE.intersection(rest):
        return 1
    if word in _ARRANGED and (not rest or rest[-1] not in _TIME_PREPOSITIONS):
        return 1
    if word in ("bought", "got") and _TICKETS.intersection(rest):
        return 1
    if word == "were" and not before and rest and rest[0].endswith("ing"):  # "were moving in June", for "we're"
        return 1
    if word in _MOVED and rest and rest[-1] in _TO_DATE:
        return 1
    if word in _UNCHANGED:
        return 0 if before in _BE or before in _DETERMINERS or before in _BEFORE_INFINITIVE else -1
    if word == "got" and before in _HAVE:
        return 1
    if before in _DETERMINERS or before in ("to", "will"):
        return 0
    if before in _WE and place > 1 and words[place - 2] in _BE:  # "am I supposed"
        return 0
    if word != "been" and (before in _BE or before in _GET or before.endswith("'re")):
        return 0
    return 0 if _GET.intersection(words[max(place - 4, 0) : place]) else -1
