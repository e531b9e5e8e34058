"""Kinds of questions: about a time and nothing else, for several things, about the past, for a time, and about now."""

from __future__ import annotations

import re

from zettel.text.days import has_past
from zettel.text.tokens import tokenize

_GENERIC_WORDS = frozenset(
    tokenize(
        "talk talked discuss discussion ask tell mention say speak spoke spoken write wrote written answer reply chat"
        " converse conversation message question topic subject thing stuff anything everything something nothing happen"
        " occur event remind reminder summarise summarize summary list show recap overview remember recall describe"
        " cover note detail memory memories record log history give gave find look check like know want wanted need"
        " help deal dealing get got please hi hey hello ok okay exactly quick quickly brief briefly short whole full"
        " entire total main important interesting new last first date day time morning afternoon evening night earlier"
        " later recently roughly approximately back ago"
    )
)
"""Tokens of words that do not name a subject."""
_GENERIC_PHRASES = re.compile(
    r"""\b(?:
    s(?:aid|ays)|t(?:old|ells)
  | (?:(?:i|we|you)(?:\sboth)?|been|was|were)\swork(?:ed|ing)?(?:\son)?
  | (?:go|goes|going|went)\s(?:on|over|through|back|down|by)
  | (?:come|comes|came|coming|bring|brought|bringing|turn|turned|pull)\s(?:up|out)
  | been\s(?:up\sto|going)
  | (?:i|you|we)\s(?:send|sent|share|shared|post|posted)
  | (?:sent|shared|posted)\s(?:with\s)?(?:you|me|us)
  | (?:catch|fill|filled)\s(?:me|us)\s(?:up|in) | touch(?:ed)?\s(?:on|upon) | on\s(?:my|your|our)\sminds?
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_FUNCTION_NAMES = re.compile(r"(?<=\S\s)(?:Will|May)\b(?!\s(?:I|you|we|be|it)\b)")
"""Names that are function words in lower case."""


def is_about_nothing_else(rest: str) -> bool:
    """Return whether a question without its time phrases has no subject: "What did I ask you about in …?"."""
    if _FUNCTION_NAMES.search(rest):
        return False
    return _GENERIC_WORDS.issuperset(tokenize(_GENERIC_PHRASES.sub(" ", rest)))


# ---------------------------------------------------------------------------------------------------------- many things

_ONE_THING = "|".join(
    "glasses spectacles sunglasses trousers pants jeans shorts leggings tights pyjamas pajamas scissors pliers"
    " headphones earphones earbuds binoculars shoes boots curtains news series species means physics mathematics maths"
    " politics economics statistics electronics athletics gymnastics genetics linguistics ethics diabetes measles hours"
    " odds chances lyrics dimensions coordinates proceeds thanks contents headquarters surroundings christmas texas"
    " lens bias canvas atlas".split()
)
"""Plural forms that mostly mean one thing, and singular forms that end in s."""
_VERBS = "|".join(
    "was has does makes helps happens causes goes comes means works keeps gives brings needs takes matters counts lies"
    " gets looks feels sounds smells tastes costs runs starts ends lives sits wants likes loves seems belongs follows"
    " plays uses explains fits falls stays remains leads points grows burns hurts its his hers ours yours theirs as"
    " always sometimes s(?:ays|tands) t(?:ells)".split()
)
"""Words after "what" that end in s and are not nouns."""
_PLURAL = (
    rf"(?!(?:{_ONE_THING}|{_VERBS})\b)(?:people|children|men|women|feet|mice|media|criteria|[a-z-]{{2,}}(?<![sui])s)\b"
)
_NOT_NOUN = (
    r"(?:do|does|did|is|are|was|were|has|have|had|can|could|should|will|would|the|an?|my|our|your|his|her|their)\b"
)
_WORD = r"(?:[\w-]+(?:['\u2019]s?)?\s)"
_OWNER = r"(?:the|my|our|his|her|its|their|your|some|these|those|[\w-]+['\u2019]s?|[\w-]+s['\u2019])"
_NUMBER = "(?:two|three|four|five|six|seven|eight|nine|ten|several|various|different)"
_AFTER_PLURAL = (
    "(?:did|do|does|don't|didn't|have|has|haven't|had|are|were|was|is|can|could|should|will|would|might|must|shall|am"
    "|i|we|you|he|she|they|in|on|of|for|from|about|with|that|at|to)"
)
_HABIT = (
    r"(?:other|single\s)?(?:day|week|weekend|month|year|morning|evening|night|afternoon|time|hour|minute|now|once"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday|spring|summer|autumn|fall|winter)s?\b"
)
""" "Every morning" and "each year" are habits."""
_SINGLE_ALL = (
    r"(?:(?:day|night|week|weekend|month|year|summer|winter|right|along|over|alone|about|in|that|this|out|too|but|good|set"
    r"|fine|of\sa|of\sit|(?:the|my|our|his|her|its|their|your)\s(?:time|way|same|while|money|life|rest|best))\b)"
)
""" "All day", "all the way"."""
_MANY: dict[str, str] = {
    "summary": (
        r"\b(?:summari[sz]e|recap|overview|rundown|timeline|chronolog\w+|run\s(?:me|us)\sthrough)\b|\bsummary\sof\b"
    ),
    "list": (
        r"^(?:(?:please|can|could|would|will|you|hey|ok|okay|now|and|also|just),?\s)*(?:list|name|enumerate|compare)\s"
        rf"|\b(?:give|show|make|write|get|send)\s(?:{_WORD}{{0,3}})list\sof\b|\bplease\slist\b"
    ),
    "everything": (
        r"(?<!\bin\s)\beverything\b(?!\s(?:is|was|will|would|ok|okay|all\sright|alright|fine|good|ready|set|in\sorder)\b)"
    ),
    "all": (
        rf"(?<!\bat\s)(?<!after\s)(?<!above\s)(?<!of\s)(?<!across\s)(?<!with\s)(?<!for\s)(?<!from\s)\ball\s(?:of\s)?(?!{_SINGLE_ALL})(?:{_OWNER}\s)?(?:{_WORD}{{0,2}})"
        rf"(?:{_PLURAL}|those|these|them)"
    ),
    "what_all": r"\b(?:what|who|where)\sall\s(?:did|do|have|has|are|were|was|happened|is)\b|\ball\sabout\smy\b",
    "every": rf"\b(?:every|each)\s(?!other\b|{_HABIT}|one\sof\sus\b)[a-z]",
    "how_many": (
        r"\bhow\s(?:many\stimes|often(?!\s(?:should|can|must)))\b|\bnumber\sof\stimes\b"
        rf"|\bhow\smany\s(?!(?:hour|day|week|month|year)s\b)(?:(?!{_NOT_NOUN}){_WORD}){{1,3}}(?:did|have|has|had)\s{_WORD}(?!have\b)[a-z]+"
    ),
    "order": (
        r"\b(?:what|which)\s(?:chronological\s)?order\b|\border\sin\swhich\b|\border\sof\s(?:the\s)?events\b"
        r"|\b(?:what|which)\s(?:is|was)\sthe\s(?:right\s)?order\sof\b|\bfrom\s(?:first|earliest)\sto\s(?:last|latest)\b"
    ),
    "which": rf"\b(?:what|which)\s(?:(?!{_NOT_NOUN}){_WORD}){{0,2}}?{_PLURAL}(?:\s{_AFTER_PLURAL}\b|[?.!]?$)",
    "which_of": (rf"\bwhich\sof\s{_OWNER}\s(?:{_WORD}{{0,2}}?){_PLURAL}\s(?:did|do|have|are|were|should|could|can)\b"),
    "number": rf"\b(?:what|which)\s(?:(?:are|were)\s(?:{_OWNER}\s)?)?{_NUMBER}\s(?:{_WORD}{{0,2}}?){_PLURAL}",
    "what_are": (
        rf"\b(?:what|who)(?:\s(?:are|were)|['\u2019]re)\s(?:all\s)?{_OWNER}\s(?:{_WORD}{{0,2}}?){_PLURAL}"
        r"(?!\s(?:made|called|named|worth|like|used|up|good|bad|so|there|here|\w+ing)\b)"
    ),
}
"""Patterns of questions for several things, with their names."""
_ASKS_FOR_MANY = re.compile("|".join(f"(?:{pattern})" for pattern in _MANY.values()), re.ASCII)
_READ_CHARACTERS = 1_000
"""Beginning of a question to examine. A longer text is a pasted document."""


def asks_for_many(text: str) -> bool:
    """Return whether a question asks for several different things: a list, a count of events, an order, a summary."""
    return bool(_ASKS_FOR_MANY.search(" ".join(text[:_READ_CHARACTERS].lower().split())))


# --------------------------------------------------------------------------------------------------------- an overview

_OVERVIEW = re.compile(
    r"""\b(?:
    overview | summar(?:y|i[sz]e) | recap | rundown | gist | fill\sme\sin
  | (?:catch|bring|get)\sme\sup(?:\son|\sto\s(?:speed|date))
  | sum\s(?:\w+\s){0,3}?up | in\s(?:short|brief|a\snutshell)
  | (?:main|key|major|recurring|overall|central|important|common)\s(?:topics?|themes?|subjects?|matters?)
  | what\s(?:topics|themes|subjects)
  | what\s(?:all\s|else\s)?(?:do|does|did)\s\w+\s(?:\w+\s)?know\s(?:about|of|on)
  | what\sis\s(?:all\s)?known\s(?:about|of)
  | what\s(?:did|have)\s(?:i|we|they)\s(?:\w+\s)?(?:discuss|talk|cover)(?:ed)?\s(?:so\sfar\s)?(?:about|on|regarding)
  | (?<!did\syou\s)tell\sme\s(?:(?:everything|all|more|something)\s)?(?:(?:that\s)?you\s(?:know|have)\s)?about
  | (?:everything|all)\s(?:that\s)?(?:i|we|you|there\sis)\b.{0,20}\sabout
  | what(?:['\u2019]s|\shas|\shave)\s(?:been\s)?(?:happening|go(?:ing|ne)\son)\s(?:with|around|at|about)
  | what\s(?:has\s|have\s)?happened\swith
  | what\s(?:has|have)\sbeen\s(?:s(?:aid)|written|noted|recorded)\s(?:about|of|on) | what\sis\sthere\s(?:about|on)
  | story\s(?:of|behind|with)
    )\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_DEVELOPMENT = re.compile(
    r"\bhow\s(?:did|has|have|had|is|are)\s.{1,80}\b(?:develop(?:ed|ing)?|evolved?|progress(?:ed|ing)?|unfold(?:ed)?)\s*[?.]?$",
    re.IGNORECASE,
)
_LAST_SESSION = re.compile(
    r"\b(?:last|latest|previous|most\srecent)\s(?:conversation|session|chat|talk|discussion|meeting)\b", re.IGNORECASE
)
_OVERVIEW_OF = re.compile(
    r"\b(?:give|show|tell|write|main|key|topics?|themes?|subjects?|please|can|could)\b", re.IGNORECASE
)
"""Words of such a question that name no subject."""


def asks_for_overview(text: str) -> bool:
    """Return whether a question is abstract: it asks for topics, a summary, or all that is known. English only.

    Example: "What do I know about the warehouse move?" is abstract, "When is the warehouse move?" is not.
    """
    text = " ".join(text[:_READ_CHARACTERS].split())
    return _OVERVIEW.search(text) is not None or _DEVELOPMENT.search(text) is not None


def asks_for_last_session(text: str) -> bool:
    """Return whether an abstract question is about the latest session: "Recap our last conversation."."""
    return _LAST_SESSION.search(text[:_READ_CHARACTERS]) is not None


def subject_of_overview(rest: str) -> str:
    """Return the subject of an abstract question without its dates; "" for everything, or for the last session."""
    subject = " ".join(rest[:_READ_CHARACTERS].split())
    for pattern in (_LAST_SESSION, _OVERVIEW, _OVERVIEW_OF):
        subject = pattern.sub(" ", subject)
    return "" if is_about_nothing_else(subject) else subject


# ------------------------------------------------------------------------------------------------------------- the past

_FORMER = re.compile(
    r"\b(?:before|previous(?:ly)?|former(?:ly)?|earlier|original(?:ly)?|initial(?:ly)?|at\sfirst|first|old|past|until|since"
    r"|ever|been|changes?|history|timeline|(?:1[89]|20)[0-9]{2})\b"
)


def asks_about_past(question: str) -> bool:
    """Return whether notes that are outdated by now may answer: "Where did Ann live before?". English only."""
    text = question.lower()
    return has_past(text) or _FORMER.search(text) is not None


# --------------------------------------------------------------------------------------------------------------- a time

_WHEN = re.compile(r"\b(?:when|what (?:time|day|date)|(?:which|what) (?:week)?day)\b", re.IGNORECASE)


def asks_when(question: str) -> bool:
    """Return whether a question asks for a time or a day. English only."""
    return _WHEN.search(question) is not None


# --------------------------------------------------------------------------------------------------------- the present

_PRESENT = re.compile(
    r"\b(?:now|nowadays|current(?:ly)?|latest|these days|still|today|at the moment|at present|new)\b", re.IGNORECASE
)
_ASKS = re.compile(
    r"\?\s*$|^\W*(?:what|where|who|whom|whose|which|how|when|do|does|is|are|am|have|has|can|will|remind|tell|list|show)\b",
    re.IGNORECASE,
)
"""A question or request, which a statement with "now" is not."""


def asks_for_present(text: str) -> bool:
    """Return whether a question asks for the present state in so many words: "Where do I live now?".

    "What did I do today?" asks for the past.
    """
    words = {word.lower() for word in _PRESENT.findall(text)}
    if not words or not _ASKS.search(text) or _FORMER.search(text.lower()):
        return False
    return words != {"today"} or not has_past(text.lower())
