"""What a text claims: of whom or what, what holds of it, what holds no more, and by which words a change shows.

A clause is read by :mod:`zettel.evolve.words`. Questions, wishes, rumours, quotations and remarks on an earlier time
claim nothing, and neither does what is only planned for somebody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from zettel.annotate.background import is_namelike, zipf
from zettel.annotate.names import NEW_WORD_ZIPF
from zettel.annotate.stopwords import CALENDAR, FILLER
from zettel.annotate.tokens import clean, token_of, tokenize
from zettel.evolve import words

MAX_CHARS = 2000
"""Characters that are read: a longer text is a document and not somebody's news."""
_BEGINNING = 4
"""Letters of a stem that all of its words begin with."""
GONE_SHARE = 0.6
"""Share of what is given up that an older text must name."""
_CACHED_TEXTS = 4096
_CAPITAL = re.compile(r"(?<![\w'])[^\W\d_a-z\u00df-\u00f6\u00f8-\u00ff][\w'-]*")
_FIRST = re.compile(r"\b(?:I|I'm|I've|I'd|I'll|me|my|mine|myself)\b|^My\b", re.ASCII)
_OURS = words.pattern(r"(?:we|we're|we've|we'll|our|ours|us)\b")
_PLAIN = re.compile(r"[^\W\d_]+|@")
_DIGIT = re.compile(r"\d")
_THEY = words.pattern(r"they(?:'ve|'re)?\b")
_THE = words.pattern(r"(?:the|our|my) ")
_IT = words.pattern(r"it(?:'s)?\b")
_PRONOUN = words.pattern(r"(?:he|she|they|his|her|their|he's|she's|they're|they've)\b")
_KIN = "|".join(sorted(words.RELATIONS))
_WHOSE = words.pattern(
    rf"(?:my|our|(?P<name>(?-i:[A-Z])\w+)'s) (?:\w+ )?(?P<whose>{_KIN})\b(?! (?:is|'s)(?: now)?(?: called| named)?"
    rf" (?-i:[A-Z]))"
    r"(?='s|,|\s+(?:(?-i:[A-Z])\w+\s+)?(?:(?:now|just|also|still|recently|finally|never|no longer)\s+)*(?:is|was|are"
    r"|were|has|had|have|will|does|did"
    r"|can|[a-z]{2,}ed|lives?|works?|quit|took|takes|went|goes|got|gets|became|left|sold|gave|owns?|runs?|prefers?"
    r"|likes?|loves?|uses?|drives?|eats?"
    r"|drinks?|plays|stud(?:y|ies)|moves?|started|stopped|broke)\b)"
)
_OF_NAME = re.compile(
    r"(?<![\w'])([A-Z\u00c0-\u00de][\w-]*)'s?\s(?!been\b|now\b|moved|based|living|working|on\b|in\b|at\b|dating)"
)
_NOT_OURS = words.pattern(r"(?:other|another|others|some|everyone|everybody|nobody|someone|somebody|most)\b")
_YOURS = words.pattern(r"your\b")
_MY_FAVOURITE = words.pattern(r"my (?:new |old |all[- ]time )?(?:favou?rite|go-to|preferred)\b")
_VERB = words.pattern(
    r"(?:is|are|was|were|has|have|had|will|am|be|do|does|did|'s|'re|'ve|'m|'ll|can|[a-z]{2,}ed|[a-z]{3,}ing|lives?"
    r"|works?"
    r"|quit|quits|broke|fell|came|fly|meet|live|work|pay|drink|eat|made|met|found|lost|bought|cut|took|takes?|went"
    r"|goes|got|gets|became|began|left|sold|gave|gone|put|set|owns?|leads?|runs?|manages?|please|call|reach|text"
    r"|email|use|contact"
    r"|prefers?|uses?|drives?|eats?|drinks?|costs?|starts?|moves?|plays?|studies|likes?|loves?|heads|handles|belongs)\b"
)
_NO_NAME = (
    CALENDAR
    | FILLER
    | frozenset("i i'm i've i'd i'll mr mrs ms dr am pm ok the my our we he she it they his her their".split())
)
_NUMBER = re.compile(r"[\d.,]*\d")
_COUNTS = {
    name: str(value)
    for value, name in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
_GROUPS = (
    (words.OF_FAVOURITES, words.FAVOURITE),
    (words.OF_NAMES, words.NAMED),
    (words.OF_CHARGE, words.CHARGE),
    (words.OF_ENDS, words.GIVEN_UP),
    (words.OF_PREFERENCES, (words.PREFERENCE,)),
    (words.OF_USES, words.USED),
    (words.OF_NOW, (words.NOW_IS,)),
)
EXCLUSIVE_STEMS = frozenset(map(token_of, words.EXCLUSIVE))
_WHEN = ("day", "date", "clock", "part of day")


class State(NamedTuple):
    """That a frame has this value: ``how`` is holds, comes or ends; ``v`` as it is written.

    ``slot`` parts what may hold together, such as the employer and the trade of a job. A ``shared`` frame is about a
    thing and the same for everybody.
    """

    frame: str
    how: str
    v: str
    slot: str = ""
    shared: bool = False

    def may_be_in(self, sentence: str, stems: frozenset[str]) -> bool:
        """Whether a sentence of these stems may fill the same frame."""
        if self.frame in words.FRAMES:
            some = words.OF_FRAMES[self.frame]
            frame = words.FRAMES[self.frame]
            return not some.isdisjoint(_plain(sentence)) and bool(
                frame.holds.search(sentence) or frame.comes.search(sentence)
            )
        if self.frame in words.TYPED:
            return words.TYPED[self.frame].search(sentence) is not None
        return not stems.isdisjoint(tokenize(self.frame))


class Gone(NamedTuple):
    """What holds no more: its stems, and as it is written."""

    stems: frozenset[str]
    text: str


class Claim(NamedTuple):
    """What one clause claims.

    ``owner`` is who it is about, case-folded ("ann", "ann/sister"; "" for a thing), ``ours`` tells that only "we" or
    "our" said so. ``head`` are the stems of what is spoken of, ``tail`` of what is said of it, ``stems`` all of them.
    ``typed`` are its values by type, each with how it is written. ``sign``: 0 none, 1
        "now"
    , 2 a word that names a change. ``stands``: it tells how
    things are, not what happened once.
    """

    owner: str
    ours: bool
    head: frozenset[str]
    tail: frozenset[str]
    stems: frozenset[str]
    typed: Mapping[str, Mapping[str, str]]
    states: tuple[State, ...]
    gone: tuple[Gone, ...]
    sign: int
    stands: bool
    text: str

    @property
    def exclusive(self) -> bool:
        """Whether of what it speaks of there is one at a time."""
        return bool(self.head & EXCLUSIVE_STEMS)

    def may_concern_text(self, folded: str) -> bool:
        """The same of a whole text, by beginnings of words alone: nearly nothing, and most fail here."""
        if self.has_value and any(stem[:_BEGINNING] in folded for stem in self.head):
            return True
        for gone in self.gone:
            if sum(stem[:_BEGINNING] in folded for stem in gone.stems) >= GONE_SHARE * len(gone.stems):
                return True
        return bool(self.states)

    def may_concern(self, sentence: str) -> bool:
        """Whether an older sentence may claim what this one ends: a tenth of the cost of reading it."""
        stems = frozenset(tokenize(sentence))
        if self.has_value and not self.head.isdisjoint(stems):
            return True
        if any(len(gone.stems & stems) >= GONE_SHARE * len(gone.stems) for gone in self.gone):
            return True
        return any(state.may_be_in(sentence, stems) for state in self.states)

    @property
    def tells(self) -> bool:
        """Whether it may say that something else holds no more."""
        if self.states or self.gone:
            return True
        return self.has_value

    @property
    def has_value(self) -> bool:
        """Whether it says of something what it is now."""
        if not (self.stands and self.head):
            return False
        if self.typed and (self.sign or self.exclusive):
            return True
        if words.NOW_IS.search(self.text):
            return True
        return bool(self.tail) and (self.exclusive or words.SHIFTED.search(self.text) is not None)


@lru_cache(maxsize=_CACHED_TEXTS)
def news(text: str, role: str | None) -> tuple[Claim, ...]:
    """The claims of ``text``, said by ``role``, that may say that something else holds no more."""
    if not words.may_tell(_plain(text)):
        return ()
    sentences = _sentences(text)
    speaker = (role or "me").casefold()
    found = [_read(one, speaker, _person_before(one, text)) for one in sentences if _may_tell(one, _plain(one))]
    return tuple(claim for some in found for claim in some if claim.tells)


def _may_tell(sentence: str, plain: frozenset[str]) -> bool:
    """Whether it is worth reading: a tenth of the cost of doing so."""
    if not words.may_tell(plain):
        return False
    if not plain.isdisjoint(words.OF_VALUES) and not plain.isdisjoint(words.OF_SIGNS):
        return True
    if not (plain.isdisjoint(words.EXCLUSIVE) and plain.isdisjoint(words.OF_SHIFTS) and "@" not in plain):
        return True
    return any(pattern.search(sentence) for pattern in _patterns(plain & words.TELLING | plain & words.OF_NOW))


def _patterns(plain: frozenset[str]) -> Iterator[re.Pattern[str]]:
    """Those that a sentence of these words may hold."""
    for name, frame in words.FRAMES.items():
        if not plain.isdisjoint(words.OF_FRAMES[name]):
            yield from frame
    for some, patterns in _GROUPS:
        if not plain.isdisjoint(some):
            yield from patterns


def claims(text: str, role: str | None, new: Claim) -> Iterator[Claim]:
    """All claims of those sentences of an older text that a newer claim may concern."""
    if not new.may_concern_text(text.casefold()):
        return
    speaker = (role or "me").casefold()
    for one in _sentences(text):
        if new.may_concern(one):
            yield from _read(one, speaker, _person_before(one, text))


@lru_cache(maxsize=_CACHED_TEXTS)
def _sentences(text: str) -> tuple[str, ...]:
    text = clean(text)
    if len(text) > MAX_CHARS:
        return ()
    if "[" in text or '"' in text or "\u201c" in text or "\u00ab" in text:
        text = words.QUOTED.sub(" ", text)
    pieces = (piece.strip() for piece in words.SENTENCE.split(text) if piece)
    return tuple(piece for piece in pieces if piece and not piece.endswith("?"))


def _plain(text: str) -> frozenset[str]:
    """The words of a text, folded and cut at apostrophes; "0" for any number, and "@"."""
    found = frozenset(_PLAIN.findall(text.casefold()))
    return found | {"0"} if _DIGIT.search(text) else found


def _person_before(sentence: str, text: str) -> str:
    """The person that the sentences before this one name, if it begins with "she": the last of them."""
    if not _PRONOUN.match(sentence):
        return ""
    before = text.partition(sentence)[0]
    people = [word.removesuffix("'s") for word in _CAPITAL.findall(before)]
    named = [word.casefold() for word in people if word.casefold() not in _NO_NAME and is_namelike(token_of(word))]
    return named[-1] if named else ""


@lru_cache(maxsize=_CACHED_TEXTS)
def _read(sentence: str, speaker: str, named: str) -> tuple[Claim, ...]:
    sign = 2 if words.STRONG.search(sentence) else 1 if words.WEAK.search(sentence) else 0
    for _ in range(3):
        sentence = words.LEAD.sub("", sentence, count=1) if words.LEAD.match(sentence) else sentence
    plain = _plain(sentence)
    if not plain.isdisjoint(words.DOUBTS) and (words.HYPOTHETICAL.search(sentence) or words.RUMOUR.search(sentence)):
        return ()
    done: list[Claim] = []
    for clause in _clauses(sentence):
        reported = words.REPORTED.search(clause)
        if reported:
            named = _subject_name(clause[: reported.start()], clause) or named
            clause = clause[reported.end() :]
            if named and _FIRST.search(clause[:4]):
                continue
        claim, named = _claim(clause, speaker, named, sign)
        if claim is None:
            continue
        if done and _IT.match(claim.text):
            last, said = done[-1], claim.tail | claim.head
            claim = claim._replace(owner=last.owner, ours=last.ours, head=last.head, tail=said - last.head)
        done.append(claim)
    return tuple(done)


def _clauses(sentence: str) -> list[str]:
    """The clauses of a sentence; a piece without a verb stays with the one after it."""
    done, open_ = [], ""
    for piece in words.CLAUSE.split(sentence):
        open_ = f"{open_}, {piece}" if open_ else piece
        if _VERB.search(piece):
            done.append(open_)
            open_ = ""
    if open_ and done:
        done[-1] += f", {open_}"
    elif open_:
        done.append(open_)
    return done


def _claim(clause: str, speaker: str, named: str, sign: int) -> tuple[Claim | None, str]:
    """The claim of a clause, and whom "she" means in the next one."""
    clause = clause.strip(" ,.")
    for _ in range(3):
        clause = words.LEAD.sub("", clause, count=1) if words.LEAD.match(clause) else clause
    owner, ours, named = _owner(clause, speaker, named)
    if owner is None:
        return None, named
    ago, future = bool(words.LONG_AGO.search(clause)), bool(words.FUTURE.search(clause))
    past = bool(words.PAST.search(clause)) and not words.SETTLED.search(clause) and not words.STRONG.search(clause)
    plain = _plain(clause)
    typed, bare = ({}, clause) if plain.isdisjoint(words.TIMES) and plain.isdisjoint("0@") else _typed(clause)
    head, tail = _head(bare, owner)
    own = frozenset(tokenize(owner))
    claim = Claim(
        owner=owner,
        ours=ours,
        head=head - own,
        tail=tail - own,
        stems=frozenset(tokenize(clause)) - own,
        typed={} if ago else typed,
        states=() if ago or future else tuple(_states(clause, plain, owner, typed, speaker)),
        gone=() if future or plain.isdisjoint(words.OF_ENDS) else tuple(_gone(clause, own)),
        sign=0 if ago else sign,
        stands=not (ago or past),
        text=clause,
    )
    return claim, named


def _owner(clause: str, speaker: str, named: str) -> tuple[str | None, bool, str]:
    """Who a clause is about (None: nobody knows), whether only "we" or "our" says so, and the person named last."""
    verb = _VERB.search(clause)
    subject = clause[: verb.start()] if verb else clause
    if _NOT_OURS.search(subject) or (_YOURS.search(clause) and not _FIRST.search(clause)):
        return None, False, named
    if whose := _WHOSE.match(clause):
        owner = f"{(words.group(whose, 'name') or speaker).casefold()}/{words.group(whose, 'whose').casefold()}"
        return owner, False, owner
    if _MY_FAVOURITE.search(clause):
        return speaker, False, named
    if name := _subject_name(subject, clause):
        both = re.search(r"\band I\b", subject) is not None
        return (speaker, False, name) if both else (name, False, name)
    if _PRONOUN.match(subject.strip()) and (named or not _THEY.match(subject.strip())):
        return (named or None), False, named
    if _FIRST.search(clause):
        return speaker, False, named
    if of_name := _OF_NAME.search(clause):
        return of_name[1].casefold(), False, of_name[1].casefold()
    if _OURS.search(clause):
        return speaker, True, named
    if _PRONOUN.search(clause):
        return (named or None), False, named
    if verb is not None and not subject.strip():  # "Moved to Oslo last week!"
        return speaker, False, named
    return "", False, named


def _subject_name(subject: str, clause: str) -> str:
    """The person that a subject begins with, case-folded: "Ann", "Ann's phone number", "Ann and I"."""
    subject = subject.strip()
    first = _CAPITAL.match(subject)
    if not first:
        return ""
    word = re.sub(r"'s?$", "", first[0])
    rest = subject[first.end() :].strip()
    owns = first[0] != word
    if (
        word.casefold() in _NO_NAME
        or not token_of(word)
        or word.isupper()
        or (rest and not owns and not _goes_on(rest))
    ):
        return ""
    token = token_of(word)
    person = (
        owns
        or is_namelike(token)
        or zipf(token) < NEW_WORD_ZIPF
        or words.PERSONAL.match(clause.strip()[len(word) :].lstrip())
    )
    return word.casefold() if person else ""


def _goes_on(rest: str) -> bool:
    """Whether what stands between a name and its verb leaves it a person: a family name, "and Bob", "has now"."""
    return bool(
        re.fullmatch(
            r"(?:(?:[A-Z][\w'-]*|and|I|now|just|also|still|no longer|never|recently|finally|officially|apparently"
            r"|has|have)\s*)+",
            rest,
        )
    )


def _typed(clause: str) -> tuple[dict[str, dict[str, str]], str]:
    """The values of a clause by type, those aside that it says to be former ones, and the clause without them."""
    found: dict[str, dict[str, str]] = {}
    for kind, pattern in words.TYPED.items():
        matches = list(pattern.finditer(clause))
        values = {
            _value(kind, m, clause): _shown(kind, m, clause)
            for m in matches
            if not words.FORMER.search(clause[: m.start()])
        }
        if values:
            found[kind] = values
        if matches:
            clause = pattern.sub(" # ", clause)
    return found, clause


def _value(kind: str, match: re.Match[str], clause: str) -> str:
    text = " ".join(match[0].casefold().split())
    if kind == "day":
        return text.rstrip("s")
    if kind == "clock":
        text = text.replace(".", ":").replace("a:m:", "am").replace("p:m:", "pm").replace(" ", "").replace(":00", "")
        return _COUNTS.get(text, text).removesuffix("o'clock").removesuffix("am").removesuffix("pm")
    if kind == "phone":
        return re.sub(r"\D", "", text)
    if kind == "number":
        unit = (
            token_of((re.match(r"\W*([^\W\d_]*)", clause[match.end() :]) or [""])[1]) if not text.endswith("%") else "%"
        )
        digits = _NUMBER.search(text)
        return f"{digits[0].replace(',', '') if digits else _COUNTS.get(text, text)} {unit}".strip()
    return text.removeprefix("the ")


def _shown(kind: str, match: re.Match[str], clause: str) -> str:
    unit = re.match(r"[ ]?[^\W\d_]+", clause[match.end() :]) if kind == "number" else None
    return match[0].strip() + (unit[0] if unit and token_of(unit[0].strip()) else "")


def _head(bare: str, owner: str) -> tuple[frozenset[str], frozenset[str]]:
    """Stems of what a clause speaks of, and of what it says of that."""
    cut = words.REASON.search(bare)
    if cut and cut.start() > 0:
        bare = bare[: cut.start()]
    own = set(tokenize(owner)) | {"#"}
    for end in words.HEAD_ENDS.finditer(bare):
        head = _telling(bare[: end.start()], own)
        if head:
            return head, _telling(bare[end.end() :], own)
    return _telling(bare, own), frozenset()


def _telling(text: str, own: Iterable[str]) -> frozenset[str]:
    return frozenset(tokenize(text)).difference(own, words.LIGHT)


def names_in(text: str) -> frozenset[str]:
    """The words of a value that are written as names."""
    return frozenset(
        token_of(re.sub(r"'s?$", "", word)) for word in _CAPITAL.findall(text) if word.casefold() not in _NO_NAME
    ) - {""}


def _states(
    clause: str, plain: frozenset[str], owner: str, typed: Mapping[str, Mapping[str, str]], speaker: str
) -> Iterator[State]:
    if owner:
        for name, frame in words.FRAMES.items():
            if plain.isdisjoint(words.OF_FRAMES[name]):
                continue
            for how, pattern in (("ends", frame.ends), ("comes", frame.comes), ("holds", frame.holds)):
                match = pattern.search(clause)
                if match and (state := _state(name, how, match, clause)):
                    yield state
                    break
    for pattern in words.FAVOURITE if not plain.isdisjoint(words.OF_FAVOURITES) else ():
        if match := pattern.search(clause):
            kind = " ".join(sorted(tokenize(words.group(match, "k"))))
            yield State(f"favourite {kind}", _how(match), _cut(words.group(match, "v")))
            break
    if not plain.isdisjoint(words.OF_PREFERENCES) and (match := words.PREFERENCE.search(clause)):
        v, than = words.group(match, "v"), words.group(match, "w")
        yield State("preference of " + " ".join(sorted(tokenize(_cut(f"{v} {than}")))), "holds", v)
    for pattern in words.USED if not plain.isdisjoint(words.OF_USES) else ():
        if (match := pattern.search(clause)) and (
            kind := " ".join(sorted(_telling(_cut(words.group(match, "k")), ())))
        ):
            yield State(f"choice of {kind}", _how(match), _cut(words.group(match, "v")))
            break
    for pattern in words.NAMED if not plain.isdisjoint(words.OF_NAMES) else ():
        if (match := pattern.search(clause)) and (what := _cut(words.group(match, "what"))):
            yield State(f"name of {what}", _how(match), _cut(words.group(match, "v")), shared=True)
            break
    for place, pattern in enumerate(words.CHARGE if not plain.isdisjoint(words.OF_CHARGE) else ()):
        if match := pattern.match(clause):
            who, what = words.group(match, "who"), _THE.sub("", _cut(words.group(match, "what")))
            who = speaker.title() if re.fullmatch(r"(?:I|I've|I'm)(?: \w+)?", who) else who.strip()
            if _telling(what, ()) and names_in(who):
                yield State(f"charge of {what}", "comes" if place in (1, 2) else "holds", who, shared=True)
                break
    for kind in ("email", "phone", "handle"):
        said = frozenset(tokenize(re.sub(r"\S*[@\d]\S*", "", clause))) - frozenset(tokenize(owner))
        if kind in typed and (said & _CONTACT or said <= words.LIGHT):
            yield State(kind, "holds", " ".join(sorted(typed[kind].values())))


_CONTACT = frozenset(map(token_of, words.CONTACT))


def _how(match: re.Match[str]) -> str:
    return "comes" if words.group(match, "new") else "holds"


def _state(frame: str, how: str, match: re.Match[str], clause: str) -> State | None:
    """The state that a frame's pattern found; None where the value is none of this frame."""
    v = _cut(words.group(match, "v"))
    before = clause[: match.start()].casefold()
    if how == "holds" and re.search(
        r"\b(?:was|were|had|not|never|no longer|love|like|miss|missed|enjoy)\b|n't", before
    ):
        return None
    if how == "comes" and re.search(r"\b(?:not|never|no longer)\b|n't", before):
        return None
    stems, named = frozenset(tokenize(v)), names_in(v)
    slot = (
        "as"
        if frame == "job"
        and re.search(r"\b(?:as|am|is|promoted)\b|'[ms]\b", clause[match.start() : match.end() - len(v)])
        else ""
    )
    if how == "ends":
        return State(frame, how, v)
    plain = frozenset(v.casefold().split())
    fits = {
        "home": bool(named or plain & words.PLACES),
        "job": bool(named or slot or "job" in match[0].casefold() or plain & words.WORKPLACES)
        and not plain & words.GROUPS,
        "partner": bool(named or plain & {"single", "married", "engaged"}),
        "studies": bool(stems) and not v.casefold().startswith(("for ", "hard", "a lot", "together", "with", "all ")),
    }.get(frame, bool(stems))
    return State(frame, how, v, slot) if fits and not typed_as_time(v) else None


def typed_as_time(v: str) -> bool:
    """Whether a value begins with a time: "moved to Friday" tells of no home."""
    return any(words.TYPED[kind].match(v) for kind in _WHEN)


def _cut(v: str) -> str:
    """A value without the circumstances told behind it."""
    cut = words.REASON.search(v)
    v = v[: cut.start()] if cut and cut.start() else v
    return re.sub(
        r"\s+(?:now|again|today|yesterday|currently|these days|instead|last \w+|this \w+|on \w+day|in (?:January"
        r"|February|March|April|May|June|July"
        r"|August|September|October|November|December)|for (?:work|a|the|my|now)\b.*|with my .*|and (?:I|it|we|he"
        r"|she)\b.*|from .*)(?=$|\s).*$",
        "",
        v.strip(),
    ).strip()


def _gone(clause: str, own: frozenset[str]) -> Iterator[Gone]:
    for pattern in words.GIVEN_UP:
        for match in pattern.finditer(clause):
            text = _cut(words.group(match, "x"))
            stems = frozenset(tokenize(text)) - own - words.LIGHT
            if stems:
                yield Gone(stems, text)
