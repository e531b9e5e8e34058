"""Recognises lasting states: sentences that are as true when somebody repeats them on another day.

"I'm allergic to nuts." repeats a state. "Went running this morning." and "I'm tired." report something that happens
again. The rules accept closed forms only, in the present tense: traits, possessions, homes and jobs, likes, habits,
names and numbers. They reject dates, past tenses, guesses, pronouns that refer to another sentence, and clauses that
depend on each other. A missed state costs a second note; a wrong one would hide an event. English only.
"""

from __future__ import annotations

import re

from zettel.text.dates import find_dates
from zettel.text.extraction import asks, sentences
from zettel.text.filler import is_filler
from zettel.text.mood import Mood, mood_of
from zettel.text.names import find_names
from zettel.text.tokens import clean

MAX_CHARS = 160
"""Longer texts tell a story."""
MAX_WORDS = 16
"""Words of a sentence."""

_PASSING = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|now|nowadays|currently|moment|soon|later|again|yet|still|already|just|finally"
    r"|recently|lately|ago|last|next|since|until|till|ever|this|these|those|so far|any ?more|longer|new|first|second"
    r"|morning|afternoon|evening|weekend|week|month|year|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february"
    r"|march|april|june|july|august|september|october|november|december)\b"
)
"""Words of a passing state or of one day."""
_REGULARLY = re.compile(
    r"\b(?:every|each|(?:once|twice|\w+ times) a) (?:\w+ )?(?:morning|afternoon|evening|night|day|weekend|week|month"
    r"|year|\w+day)\b"
)
_REFERS = re.compile(
    r"\b(?:it|its|that|there|here|he|him|his|she|her|they|them|their|you|your|yours|ones?|same|other|another|either"
    r"|neither|both|all|else|instead|too|what|how|which|so|like the|love the|prefer the|hate the)\b"
)
"""Words that refer to another sentence or to the listener."""
_JOINS = re.compile(
    r"\b(?:but|because|cause|while|if|when|whenever|unless|after|before|although|though|then)\b|[;:(\n]"
)
_PAST = re.compile(
    r"\b(?:was|were|did|didn't|had|went|got|made|met|sa(?:w|id)|came|to(?:ok|ld)|bought|found|left|lost|won|ran|ate|gave|felt"
    r"|(?!married|divorced|retired|called|named|need|bed|red|speed|handed)[a-z]{2,}ed)\b"
)
_UNREAL = re.compile(
    r"\b(?:will|won't|would|wouldn't|could|should|might|may|must|going to|gonna|want|hope|think|guess)\b|'(?:ll|d)\b"
)

_ADVERB = r"(?: (?:always|never|usually|mostly|often|only|really|also|actually|not|do not|don't|does not|doesn't))*"
_BE = r"(?:'m| am|'re| are|'s| is)(?:n't)?"
_KIN = (
    r"wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|son|daughter|brother|sister|mother|father|mom|mum|mam|dad"
    r"|grandmother|grandfather|grandma|grandpa|aunt|uncle|niece|nephew|cousin|boss|manager|supervisor|landlord|landlady"
    r"|doctor|dentist|therapist|teacher|tutor|coach|flatmate|roommate|neighbou?r|friend|dog|cat|horse|pony|rabbit|parrot"
)
_THING = (
    r"name|nickname|surname|code|password|pin|passphrase|number|address|e-?mail|extension|birthday|employer|company"
    r"|favou?rite(?: \w+){1,2}|blood type|shoe size|dress size|time ?zone|budget|native language|mother tongue|hometown"
)
_TRAITS = (
    r"(?:a )?(?:strict )?(?:vegan|vegetarian|pescatarian|teetotal|diabetic|coeliac|celiac)|(?:\w+[ -])?intolerant"
    r"|allergic to|left[- ]handed|right[- ]handed|colou?r[- ]?blind|deaf|blind|dyslexic|autistic|asthmatic|married"
    r"|divorced|single|retired|widowed|afraid of|scared of|from(?= [A-Z])|based in"
    r"|[A-Z][a-z]+(?:ian|ish|ese|man|can|ench|utch)\b"
)
_VERBS = (
    r"lives?|works?|stud(?:y|ies)|teach(?:es)?|owns?|keeps?(?! \w+ing\b)|drives?(?= an?\b)|plays?|speaks?"
    r"|drinks?|smokes?|uses?|wears?|collects?|rents?|volunteers?"
)
_LIKES = r"likes?|loves?|hates?|prefers?|dislikes?|enjoys?|adores?|avoids?|can't stand|cannot stand"
_COUNT = r"no|an?|one|two|three|four|five|six|seven|eight|nine|ten|\d+"
_OWNED = (
    rf"(?:{_KIN})|(?:brother|sister|son|daughter|cousin|dog|cat|horse|hen|chicken|goat|cow|bee|rabbit)s|kids?|child(?:ren)?"
    r"|twins|siblings|allerg(?:y|ies)|(?:\w+ )?allergy|asthma|diabetes|garden|allotment|car|bike|boat|house|flat"
)
_SUBJECT = (
    rf"[Ii]\b|[Ww]e\b|(?:[Mm]y|[Oo]ur|[A-Z]\w+'s) (?:\w+ )?(?:{_KIN}|parents|kids|children)"
    r"|(?P<name>[A-Z][\w-]+(?: [A-Z][\w-]+)?)"
)
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"(?:{_SUBJECT}){_BE}{_ADVERB} (?:{_TRAITS})",
        # "I'm a nurse", not "I'm a bit late" or "I'm a mess"
        rf"(?:[Ii]|[Ww]e|[Mm]y (?:{_KIN})){_BE}{_ADVERB} an? (?!bit|little|lot|mess|wreck|few|couple|while|tad|touch"
        r"|huge|step|day|minute|hour|no\b|yes\b|maybe)[\w-]+(?: [\w-]+){0,3}$",
        rf"(?:{_SUBJECT}){_ADVERB} (?:{_VERBS}) \w",
        rf"(?:{_SUBJECT}){_ADVERB} (?:{_LIKES}) (?!the |an? |to )[\w-]+",
        rf"(?:{_SUBJECT}) (?:can't|cannot|never|don't|do not|doesn't|does not) (?:eat|drink|smoke|drive|swim)s?\b",
        rf"(?:{_SUBJECT})(?: have| has|'ve)(?: got)? (?:{_COUNT})? ?(?:\w+ ){{0,2}}(?:{_OWNED})$",
        # "My boss is Ingrid", "the vault code is 1234", "my favourite colour is green"
        rf"(?:[Mm]y|[Oo]ur|[A-Z]\w+'s) (?:\w+ )?(?:{_KIN})(?:'s| is)(?: called)? [A-Z]\w+(?: [A-Z]\w+)?$",
        rf"(?:[Mm]y|[Oo]ur|[A-Z]\w+'s|[Tt]he [\w'-]+)(?: [\w'-]+){{0,3}} (?:{_THING})(?: [\w'-]+){{0,4}} (?:is|are)"
        r" [\w@.&#*+/'-]+(?: [\w'-]+){0,3}$",
        r"(?:[Pp]lease )?[Cc]all me [A-Z]\w*(?: [A-Z]\w*)?$",
    )
)


def is_state(text: str) -> bool:
    """Return whether every sentence of a short text asserts a lasting state, apart from pleasantries.

    Example: true for "I'm allergic to nuts.", false for "I'm tired." and "I ran to Asker.".
    """
    text = clean(text)
    if len(text) > MAX_CHARS or asks(text):
        return False
    asserted = [rest for sentence in sentences(text) if (rest := _without_pleasantries(sentence))]
    return bool(asserted) and all(map(_is_state, asserted))


def _without_pleasantries(sentence: str) -> str:
    """Return a sentence without its end signs, and without "Well, " before or ", thanks" after it."""
    pieces = sentence.strip().rstrip(".!\u2026 ").split(",")
    while pieces and is_filler(pieces[0]):
        del pieces[0]
    while pieces and is_filler(pieces[-1]):
        del pieces[-1]
    return ",".join(pieces).strip()


def _is_state(sentence: str) -> bool:
    low = sentence.lower()
    if len(low.split()) > MAX_WORDS or mood_of(low) is not Mood.CLAIMED:
        return False
    once = _REGULARLY.sub(" ", low)
    if any(pattern.search(once) for pattern in (_PASSING, _REFERS, _JOINS, _PAST, _UNREAL)):
        return False
    if not any(_fits(form, sentence) for form in _FORMS):
        return False
    return not find_dates(_REGULARLY.sub(" ", sentence), None)


def _fits(form: re.Pattern[str], sentence: str) -> bool:
    """Return whether a sentence has a form. A capitalised subject must be a name: "Dinner is ..." has none."""
    match = form.match(sentence)
    if match is None:
        return False
    name = match.groupdict().get("name")
    return name is None or any(name in found.text for found in find_names(sentence))
