"""The English that tells of facts and of their changes, as patterns; what they are put together to is in
:mod:`zettel.evolve.claims`.

Closed classes and common verbs only, no names: what they miss costs a link, what they take wrongly hides a memory.
"""

from __future__ import annotations

import re
from itertools import count
from typing import NamedTuple


def pattern(text: str) -> re.Pattern[str]:
    """A pattern that begins with a word, in any case; a group may have its name several times, see :func:`group`."""
    numbers = count()
    return re.compile(r"\b(?:" + _NAMED.sub(lambda m: f"(?P<{m[1]}_{next(numbers)}>", text) + ")", re.IGNORECASE)


def group(match: re.Match[str], name: str) -> str:
    """What the groups of this name hold, the first that holds anything; empty for none."""
    found = (text for key, text in match.groupdict().items() if text and key.startswith(name + "_"))
    return next(found, "")


_NAMED = re.compile(r"\(\?P<(\w+)>")


HYPOTHETICAL = pattern(
    r"(?:if|unless|whether|suppose|supposing|imagine|what if|might|maybe|perhaps|possibly|would|could|should"
    r"|wish(?:es|ed)?"
    r"|almost|nearly|considering|considered|considers|thinking (?:of|about)|thought (?:of|about)|toying|dream(?:s|ed"
    r"|ing)?"
    r"|hop(?:e|es|ed|ing) to|want(?:s|ed)? to|wanna|(?:would|'d) (?:like|love|rather)|tempted|planned to|supposed to"
    r"|rumou?rs?"
    r"|in (?:my|the|a|an|this|his|her|our) (?:\w+ )?(?:novel|story|book|dream|movie|film|game|play|script|show)\b"
    r"|fell through|came to nothing|not sure|unsure|undecided|pretend(?:s|ed|ing)?|jok(?:e|ed|ing)|as if|as though"
    r"|in case"
    r"|in another life|one day|some ?day|used to think|offered|asked|invited"
    r"|will probably|probably|likely|expect(?:s|ed)?|wonder(?:s|ed|ing)?|forgot|tried to|refused|declined|turned"
    r" down)\b"
    r"|(?:did(?: not|n't)|has(?: not|n't)|have(?: not|n't)|had(?: not|n't)|never|decided (?:against|not to)|chose"
    r" not to)"
    r"(?: \w+){0,2} (?:mov|chang|switch|quit|leav|tak|took|start|join|reschedul|sell|sold|happen|replac|giv|renam)"
)
"""A sentence with one of these states nothing as a fact."""
QUOTED = re.compile('["\u201c\u00ab][^"\u201c\u201d\u00ab\u00bb]*["\u201d\u00bb]|\\[[^\\[\\]]*\\]')
"""Words of others, and remarks of whoever wrote it down."""
RUMOUR = pattern(r"(?:heard|thinks?|believes?|suspects?|guess(?:es)?|apparently|allegedly)\b")
REPORTED = pattern(
    r"(?:says?|said|told (?:me|us)|mentioned|announced|confirmed|wrote|tells (?:me|us)) (?:to me )?(?:that )?"
)
"""What follows is told of somebody else, mostly."""
LONG_AGO = pattern(
    r"(?:ago|back then|back when|back in|at the time|in those days|when (?:I|we|he|she|they) (?:was|were|lived"
    r"|worked|had|first)"
    r"|as a (?:kid|child|boy|girl|student|teen(?:ager)?)|in my (?:teens|youth|twenties|childhood)|childhood|growing"
    r" up|used to"
    r"|formerly|years? (?:earlier|before)|for (?:\w+ ){1,2}years before|in (?:19|20)\d\d)\b"
)
"""A remark on an earlier time."""
FUTURE = pattern(
    r"(?:will|'ll|shall|going to|gonna|plan(?:s|ning)? (?:to|on)|about to|am moving|'m moving|'re moving|are moving"
    r"|is moving"
    r"|soon|next (?:week|month|year|spring|summer|autumn|fall|winter))\b"
)
PAST = pattern(
    r"(?:was|were|wasn't|weren't|did|didn't|had|hadn't|went|got|took|saw|met|came|felt|bought|ate|drank|gave|said|told"
    r"|thought|loved|liked|wanted|needed|used|tried|visited|watched|played|worked|lived|stayed|studied|called|talked"
    r"|looked"
    r"|walked|finished|ended|enjoyed|helped|attended|spent|won|lost|ran|wrote|drove|flew|found|left|sat|stood|made)\b"
)
SETTLED = pattern(
    r"(?:booked|scheduled|agreed|arranged|fixed|set|settled|decided|chose|chosen|picked|signed up|planned|put|moved"
    r"|joined"
    r"|started|became|switched|changed|relocated|have|has|'ve|'s|now|renamed|upgraded|hired|named|appointed|based"
    r"|located"
    r"|engaged|married|reserved|planned|pinned|configured|capped|priced|owned|led|called|bought|got|took over"
    r"|rescheduled"
    r"|postponed|raised|lowered|increased)\b"
)
"""Past forms that tell how things stand since."""

LEAD = pattern(
    r"(?:from now on|(?:as of|starting|effective|since|after) (?:[^,]{1,40}(?=,)|(?:(?:last|next|this) )?\w+)|going"
    r" forward|these days|nowadays|currently"
    r"|at the moment|right now|now|actually|update|fyi|btw|by the way|heads[- ]up|(?:good|bad|big|great|sad) news"
    r"|news|reminder|"
    r"correction|quick (?:note|update)|note|so|well|and|but|also|anyway|hey|hi|hello|oh|ok|okay|yes|yeah|finally"
    r"|turns out|"
    r"just so you know|for the record|guess what|change of plans?|last \w+|yesterday|today|this \w+)\b[\s,:!-]*"
)
"""What may stand before a subject."""

STRONG = pattern(
    r"not (?:(?:on|at|in|the) )*(?-i:[A-Z0-9])|(?:put|brought) [\w ]{2,30} (?:up|down)\b|no more\b|"
    r"(?:no longer|any ?more|any longer|instead|rather than|from now on|going forward|starting|effective|as of"
    r"|had to (?:move|reschedule|postpone|change|cancel|switch)|slipped|rebooked|rebook|grew|grown|shrank|change of"
    r" plans?"
    r"|moved|moves|relocated|rescheduled|postponed|pushed|brought forward|put off|shifted|delayed|changed|changes"
    r"|switched"
    r"|swapped|replaced|replaces|replacing|renamed|rebranded|upgraded|downgraded|bumped|migrated|converted|raised"
    r"|lowered|increased|decreased"
    r"|reduced|cut|went (?:up|down)|gone (?:up|down)|rose|risen|dropped|climbed|jumped|fell|doubled|halved|extended"
    r"|shortened"
    r"|took over|taken over|takes over|taking over|handed|transferred|reassigned|passed (?:on )?to|inherited|stepped"
    r" down|succeeded"
    r"|quit|resigned|gave up|given up|stopped|cancelled|canceled|called off|broke up|split up|divorced|separated"
    r"|sold|traded"
    r"|new|newly|became|become|updated|revised|corrected|correction|overhauled|gone off|went off|used to be|down to"
    r"|up to)\b"
)
"""Signs of a change that name it."""
SHIFTED = pattern(
    r"(?:moved?|shifted|switched|changed|migrated|transferred|converted)\b(?: [^\s,;]+){0,5}? (?:to|into) (?!be\b"
    r"|have\b|do\b|get\b)"
    r"|(?:replaced|swapped)\b(?: [^\s,;]+){1,5}? (?:with|by|for)\b"
)
"""Something was made another thing."""
WEAK = pattern(
    r"(?:now|nowadays|currently|these days|at the moment|since|lately|recently|finally|has been|have been|already)\b"
)
"""Signs that something holds since not long ago."""

REASON = pattern(
    r"(?:because|since|so that|due to|thanks to|after|when|while|which|who|where|although|though|as (?:I|we|he|she"
    r"|they|the|it|my|our)"
    r"|in order to|until further|for good|for the time being)\b"
)
"""Where what is stated ends and its circumstances begin."""
CLAUSE = re.compile(
    r"\s*(?:[;\u2014\u2013]|:(?=\s)|\s-\s|,?\s\b(?:but|yet|so|because|though|although|while|whereas)\b"
    r"|,?\s\band\b(?=\s(?:I|I'm|I've|we|he|she|they"
    r"|it|it's|now|my|our|the|his|her|their)\b)|,(?=\s(?:I|I'm|I've|we|we're|we've|he|she|they|it|it's|now|my|our"
    r"|and|not)\b))\s*"
)
SENTENCE = re.compile(
    r"[.!\u2026]+(?<!\b[A-Z]\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bSt\.)(?=\s|$)|(?<=\?)|\n+"
)

RELATIONS = frozenset(
    "sister brother mother mom mum father dad wife husband partner son daughter kid kids friend boss colleague"
    " neighbour"
    " neighbor roommate flatmate cousin aunt uncle grandma grandpa grandmother grandfather parents girlfriend boyfriend"
    " niece nephew twin family team company dog cat fiance fiancee ex manager doctor dentist teacher coach therapist"
    " landlord landlady lawyer accountant"
    " client teammate classmate flatmates roommates parents grandparents kids".split()
)
"""Whoever is someone's is not that one."""
GENERIC = frozenset(
    "class session lesson meet appoint appointment call team project servic membership club event trip booking"
    " account".split()
)
"""Stems that add nothing to what they stand beside: yoga, and the yoga class."""
EXCLUSIVE = frozenset(
    "nickname number phone mobile cell email mail address password passcode pin code deadline price rent"
    " fee cost rate salary budget boss manager owner maintainer contact limit timeout"
    " quota version port host url branch default theme editor major diet doctor dentist therapist teacher coach desk"
    " venue wifi username interval threshold retention window".split()
)
"""Of what these name there is one at a time."""
LIGHT = frozenset(
    "pay paid want charg ask "
    "thing stuff lot bit way new old current today tomorrow yesterday week month year day time hour minut morn"
    " afternoon"
    " even night go get take make have come keep use need know think want like love feel good great nice realli pretti"
    " actual now current still give gave given abl stuck moment usual final origin first last next schedul move"
    " switch chang set updat renam upgrad push"
    " postpon reschedul shift bump rais lower increas drop cut swap replac hand transfer becom start stop no not longer"
    " anymor ani more instead trip dr mr mrs ms prof delay extend shorten doubl halv climb jump fell rose risen migrat"
    " convert rebook slip grew shrank thank hey hi hello yeah yep wow congrat sorri awesom amaz sure definit convert"
    " revis correct becam leav new onward forward work everi each oclock pm am euro dollar pound eur usd gbp nok"
    " cost happen"
    " plan pleas back help decid agre held hold onli put everyon offici down up went gone announc news since"
    " two three one person peopl life best look tri moment right well".split()
)
"""Stems that say too little to tell what something is about."""

WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
MONTH = (
    r"(?:january|february|march|april|june|july|august|september|october|november|december"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
)
_COUNT = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|ninety"
    "|hundred"
)
TYPED: dict[str, re.Pattern[str]] = {
    "email": re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w"),
    "link": re.compile(r"https?://\S+|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|local|internal)\b(?:/\S*)?"),
    "handle": re.compile(r"(?<![\w@])@\w+"),
    "version": re.compile(r"\bv\d+(?:\.\d+)*\b|\b\d+\.\d+\.\d+\b", re.IGNORECASE),
    "phone": re.compile(r"(?<![\w-])\+?\(?\d[\d\s().-]{5,}\d(?![\w-])"),
    "day": pattern(rf"{WEEKDAY}\b|every ?day\b|weekends?\b|daily\b"),
    "date": pattern(
        rf"\d{{4}}-\d\d-\d\d\b|(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{MONTH}|may\b)|(?:{MONTH}|may) (?:the"
        rf" )?\d{{1,2}}(?:st|nd|rd|th)?\b"
        rf"|the \d{{1,2}}(?:st|nd|rd|th)\b|{MONTH}\b|(?:spring|summer|autumn|winter)\b"
    ),
    "clock": pattern(
        r"\d{1,2}(?:[:.]\d\d)? ?(?:am|pm|a\.m\.|p\.m\.|o'clock)(?!\w)|\d{1,2}:\d\d\b|noon\b|midnight\b"
        rf"|(?:half|quarter|ten|twenty|five) (?:past|to) (?:\d{{1,2}}|{_COUNT})\b|(?<=at )(?:\d{{1,2}}"
        rf"|{_COUNT})\b(?![%,.\d])"
    ),
    "part of day": pattern(r"(?:mornings?|afternoons?|evenings?|nights?|lunch ?time|dawn)\b"),
    "number": re.compile(
        rf"(?:[$\u20ac\u00a3] ?)?\b\d[\d,]*(?:\.\d+)?(?:k|kg|km|m|gb|mb|tb|ms|s|h)?\b ?%?"
        rf"|\b(?:{_COUNT})\b|\b(?:once|twice)\b",
        re.IGNORECASE,
    ),
}
"""Values whose type shows, in the order in which they are taken out of a text."""


class Frame(NamedTuple):
    """What may be stated of somebody, of which one thing holds at a time: how it is said to hold, to have come
    about, and to have ended. Group ``v`` is the value."""

    holds: re.Pattern[str]
    comes: re.Pattern[str]
    ends: re.Pattern[str]


_AWAY = (
    r"(?:(?:back|over|out|down|up|across|away|house|flat|in|permanently|overseas|abroad|all the way|again|just|here"
    r"|from [^,]{2,30}?) )*"
)
_V = r"(?P<v>[^,;()]+)"
_TRADES = (
    "teacher|nurse|doctor|engineer|developer|designer|manager|lawyer|chef|baker|barista|analyst|accountant"
    "|consultant|architect|editor|writer"
    "|driver|carpenter|electrician|plumber|researcher|scientist|librarian|waiter|waitress|cook|journalist"
    "|photographer|translator|pharmacist"
    "|paramedic|pilot|mechanic|farmer|gardener|freelancer|intern|programmer|administrator|therapist|dentist|vet"
    "|professor"
)
_SUBJECTS = (
    "physics|chemistry|biology|law|medicine|history|economics|engineering|nursing|art|music|psychology|sociology"
    "|philosophy|literature|linguistics"
    "|math(?:s|ematics)?|computer science|business|architecture|education|geography|geology|design|journalism"
    "|marketing|accounting|finance"
    "|French|German|Spanish|Italian|Japanese|Chinese|Norwegian|English|statistics|astronomy|theology|anthropology"
    "|archaeology|politics|pharmacy"
)
FRAMES: dict[str, Frame] = {
    "home": Frame(
        pattern(
            r"(?:liv(?:e|es|ing)|resid(?:e|es|ing)|(?:am|is|are|'m|'s|'re|be(?:en)?) (?:now |currently )?based"
            r"|rent(?:s|ing)? (?:a \w+ ?\w*))"
            rf" (?:\w+ )?(?:in|at|on|near|with|outside|out of) {_V}|home is (?:now )?(?:in )?{_V}|(?<!mail )address"
            rf" is (?:now )?{_V}|(?<!mail )address (?:has )?changed to {_V}"
            rf"|(?:our|my|his|her|their) (?:flat|apartment|house|home|place) is (?:now )?(?:in|on|at|near) {_V}"
        ),
        pattern(
            rf"(?:have |has |'ve |'s )?(?:just |finally |recently )?(?:moved|relocated|resettled) {_AWAY}(?:to|into"
            rf"|in with|in) {_V}"
            rf"|settl(?:ed|ing) (?:in|into|down in|in to) {_V}"
            rf"|new (?:flat|apartment|house|home|place|studio|condo) (?:is )?(?:in|on|at|near) {_V}|new address(?:"
            rf" is|:) {_V}|calls? (?P<v>[^,;]+?) home\b"
            rf"|bought (?:a |our |my )(?:\w+ )?(?:flat|apartment|house|place|home|condo) (?:in|on|at|near) {_V}"
        ),
        pattern(r"moved (?:out of|away from) (?P<v>[^,;]+)"),
    ),
    "job": Frame(
        pattern(
            rf"works? (?:\w+ )?(?:as|at|for|with) {_V}|working (?:full[- ]time |part[- ]time )?(?:as|at|for) {_V}"
            rf"|employed (?:as|at|by) {_V}|(?:my|his|her) (?:job|employer|company) is {_V}|(?:have|has) a job (?:as"
            rf"|at|with) {_V}|job is (?:at|with|in) {_V}"
            rf"|(?:am|is|'m|'s) (?:now )?(?P<v>(?:an?|our|the|their) (?:[\w-]+ ){{0,2}}(?:{_TRADES}))\b[^,;]*"
        ),
        pattern(
            rf"(?:started|starting|began)(?: working| work)? (?:(?:a|my|his|her) (?:new )?(?:job|role|position)"
            rf" )?(?:as|at|with|for) {_V}"
            rf"|first day (?:at|with|as) {_V}|joined {_V}|(?:am|is|'m|'s) (?:now )?(?:with|at)"
            rf" (?P<v>(?-i:[A-Z])[^,;]*?) now|new (?:job|role"
            rf"|position|employer) (?:is )?(?:as|at|with) {_V}|hired (?:as|by) {_V}|promoted to {_V}"
            rf"|(?:took|accepted|got|landed) (?:a|the) (?:new )?(?:job|position|role|post) (?:as|at|with) {_V}"
            rf"|switched (?:jobs )?(?:to|into) (?P<v>(?:working|teaching|nursing|freelanc\w+)[^,;]*)|retrained as {_V}"
            rf"|moved (?:on |over )?(?:from [^,;]+ )?to (?P<v>[^,;]+?) as an? [^,;]+"
        ),
        pattern(
            r"(?:quit|resigned from|left(?= (?:my |his |her |the |(?-i:[A-Z])|teaching|nursing))|lost(?= (?:my|his"
            r"|her|the) (?:job|position))|retired from|laid off (?:from|by)|fired (?:from|by)|let go (?:from|by)"
            r"|finished at"
            r"|stepped down (?:from|as)|handed in my notice (?:at|to)) (?P<v>[^,;]*)|(?:resigned|retired|unemployed"
            r"|was laid off)\b"
        ),
    ),
    "studies": Frame(
        pattern(
            rf"(?:stud(?:y|ies|ying)|major(?:s|ing)? in) (?P<v>(?:{_SUBJECTS})\b[^,;]*|(?:at|in) (?-i:[A-Z])[^,;]*)"
        ),
        pattern(
            rf"(?:switched|changed|transferred) (?:(?:my |her |his )?(?:major|course|studies|degree)(?: from"
            rf" [^,;]+)? to|(?:from [^,;]+ )?to studying) {_V}"
            rf"|(?:enrolled (?:in|at)|started studying|transferred(?: from [^,;]+)? to)"
            rf" (?P<v>(?:{_SUBJECTS})\b[^,;]*|(?-i:[A-Z])[^,;]*)"
        ),
        pattern(r"(?:graduated|dropped out)(?: (?:from|of) (?P<v>[^,;]+))?"),
    ),
    "partner": Frame(
        pattern(
            rf"(?:dat(?:e|es|ing)|going out with|in a relationship with|together with|(?:am|is|'m|'s|are) (?:seeing"
            rf"|engaged to|married to)) {_V}"
            rf"|(?:my|his|her) (?:girlfriend|boyfriend|partner|wife|husband|fianc\u00e9e?|fiancee?) (?:is"
            rf" )?(?:called |named )?(?P<v>(?-i:[A-Z])\w+)"
            r"|(?:am|is|are|'m|'s|'re) (?P<v>single|married|engaged)\b"
        ),
        pattern(rf"(?:got (?:married|engaged)|(?:married|engaged)) to {_V}|started (?:dating|seeing) {_V}"
                r"|(?:am|is|'m|'s) (?:now |newly )?(?P<v>single)(?: again| now)\b|(?:new|now) (?:girlfriend"
                r"|boyfriend|partner) (?:is )?(?P<v>(?-i:[A-Z])\w+)"),
        pattern(
            r"(?:broke up|broken up|split up|separated|divorced|parted ways|called off (?:my|our|the|her|his)"
            r" engagement)(?: (?:with|from))?(?: (?P<v>[^,;]+))?"
        ),
    ),
    "diet": Frame(
        pattern(
            r"(?:am|is|'m|'s|are|a|been|went|gone|eats?|strictly|follow\w*)\b[\w ]{0,12} (?P<v>vegan|vegetarian"
            r"|pescatarian|keto|gluten[- ]free|omnivore)"
        
                r"|(?:eats?|love[sd]?|enjoys?) (?P<v>meat|fish|dairy|everything|steak|cheese)"),
        pattern(
            r"(?:became|become|turned|went|gone) (?:a )?(?:fully )?(?P<v>vegan|vegetarian|pescatarian|keto"
            r"|gluten[- ]free)"
        
                r"|(?:eat(?:ing|s)? (?P<v>meat|fish|dairy|everything|cheese)(?: again| now))"),
        pattern(
            r"(?:gave up|given up|stopped eating|stopped being|no longer) (?:eats? |a )?(?P<v>meat|fish|dairy|cheese"
            r"|vegan|vegetarian|keto)"
        ),
    ),
    "way to work": Frame(
        pattern(
            r"(?P<v>cycl\w+|bik\w+|driv\w+|walk\w*|(?:tak\w+|ride|rides|riding|catch\w*|use|uses) (?:the|a|my)"
            r" (?:bus|train|tram|metro|subway|ferry|car|bike|scooter)"
            r"|go(?:es)? by (?:bus|train|tram|metro|car|bike|ferry)|commut\w+ by \w+) (?:in )?(?:to|into) (?:work"
            r"|the office|school|campus)"
            r"|commute is (?:now )?(?:by |on )?(?P<v>[^,;]+)|commut\w+ (?:by|on) (?P<v>[^,;]+)"
        ),
        pattern(
            r"(?:switched|changed) (?:from [^,;]+ )?to (?P<v>cycling|biking|driving|walking|the (?:bus|train|tram"
            r"|metro|ferry)|taking [^,;]+) (?:to|for) (?:work|the office|school|my commute)"
        ),
        pattern(r"stopped (?P<v>cycling|biking|driving|walking|taking the \w+) to (?:work|the office|school)"),
    ),
}  # fmt: skip
"""Frames of a person."""

CHARGE = (
    pattern(
        r"(?P<who>[\w .'-]+?) (?:now |currently |officially )?(?:owns|leads|runs|manages|maintains|heads|oversees"
        r"|handles|coordinates|looks after|takes care of"
        r"|is (?:now |currently )?(?:responsible for|in charge of|leading|running|managing|handling|the (?:new"
        r" )?(?:owner|lead|maintainer|manager|head|contact|coordinator) (?:of|for|on)))"
        r" (?P<what>[^,;]+)"
    ),
    pattern(
        r"(?P<who>[\w .'-]+?) (?:has |have |is |will be |just |'s )*(?:took|taken|takes|taking) (?:over|charge of)"
        r" (?P<what>.+?)(?: from (?P<old>[\w .'-]+?))?(?: (?:now|today|as of|starting|from|on|this|last)\b.*)?$"
    ),
    pattern(
        r"(?P<old>[\w .'-]+?) (?:has |just )*(?:handed|passed|transferred|gave) (?:over )?(?P<what>[^,;]+?) (?:over "
        r"|on )?to (?P<who>[\w .'-]+)"
    ),
    pattern(
        r"(?P<what>[\w .'-]+?) (?:is|was|has been|are) (?:now )?(?:owned|led|run|managed|maintained|headed|handled"
        r"|handed (?:over )?to|reassigned to|transferred to|assigned to|taken over)"
        r" ?(?:by|to)? (?P<who>[\w .'-]+)"
    ),
    pattern(r"(?P<what>[\w .'-]+?) (?:now )?belongs to (?P<who>[\w .'-]+)"),
    pattern(
        r"(?:the )?(?:new )?(?:owner|lead|maintainer|manager|head|person in charge|point of contact|contact) (?:of"
        r"|for|on) (?P<what>[\w .'-]+?) is (?:now )?(?P<who>[\w .'-]+)"
    ),
)
"""Who is in charge of what: one at a time."""

_X = r"(?P<x>[^,;()]+?)"
_STOP = r"(?=,|;|$| (?:and|but|because|since|so|for|after|when|as|last|this|in favou?r|yesterday|today)\b)"
GIVEN_UP = (
    pattern(rf"(?:over with|done with|no more) {_X}{_STOP}"),
    pattern(rf"no longer {_X}{_STOP}"),
    pattern(
        r"(?:don't|doesn't|do not|does not|isn't|aren't|am not|'m not|is not|are not|'s not|not|never)"
        r" (?P<x>[^,;]+?) any ?(?:more|longer)\b"
    ),
    pattern(rf"(?:instead of|rather than|in place of) {_X}{_STOP}"),
    pattern(
        rf"(?:quit|stopped|gave up|given up|giving up|ditched|called off|broke up with|got rid of|scrapped|abandoned"
        rf"|gone off|went off|cut out|dropped out of|unsubscribed from|swore off|moved on from) (?!by\b|to\b"
        rf"|over\b){_X}{_STOP}"
    ),
    pattern(rf"(?:cancell?ed|sold|dropped|returned) (?:the |my |our |his |her |their |(?=(?-i:[A-Z]))){_X}{_STOP}"),
    pattern(r"(?:replac(?:ed|ing|es)) (?P<x>[^,;]+?) (?:with|by)\b"),
    pattern(r"(?:swapped|traded|exchanged|ditched|dropped) (?P<x>[^,;]+?) for\b"),
    pattern(
        r"(?:moved|switched|changed|migrated|upgraded|renamed|converted|transferred|went|gone|relocated)\b[^,;]*?"
        r" from (?P<x>[^,;]+?) (?:to|into)\b"
    ),
    pattern(
        r"(?:the |our |my )?(?P<x>[^,;]+?) (?:is|are|was|were|has been|have been|got|'s) (?:now |been |all"
        r" )?(?:cancell?ed|called off|replaced|scrapped|discontinued|retired|decommissioned|no more)\b"
    ),
    pattern(r"(?P<x>[^,;]+?) (?:took|takes|has taken) the place of (?P<y>[^,;]+)"),
    pattern(rf"used to {_X}{_STOP}"),
)  # fmt: skip
"""Where a text names what holds no more, as group ``x``."""

HEAD_ENDS = pattern(
    r"(?:is|are|'s|'re|will be|be|being|been|remains?|to|at|on|in|for|from|until|till|by|with|costs?|as|called|named"
    r"|starts?|begins?"
    r"|opens?|closes?|leaves?|departs?|arrives?|lasts?|takes|runs|uses?|using|equals|over to|every|each|instead|now"
    r"|no longer)\b|[:=]"
)
"""Where what is spoken of ends and what is said of it begins."""

FAVOURITE = (
    pattern(
        r"(?:my|his|her|their|our|\w+'s) (?P<new>new )?(?:(?:all[- ]time )?favou?rite|go-to|preferred)"
        r" (?P<k>[\w -]+?) (?:is|are|has become|will be|'s)(?P<new> now| currently)? (?P<v>[^,;]+)"
    ),
    pattern(
        r"(?P<v>[^,;]+?) (?:is|are|'s)(?P<new> now| currently)? (?:my|his|her|their|our|\w+'s) (?P<new>new"
        r" )?(?:(?:all[- ]time )?favou?rite|go-to|preferred) (?P<k>[\w -]+)"
    ),
    pattern(
        r"(?P<new>switched) to (?P<v>[^,;]+?) as (?:my|his|her|their|our) (?:favou?rite|go-to|preferred)"
        r" (?P<k>[\w -]+)|(?P<v>[^,;]+?) (?P<new>has become|became) (?:my|his|her|their|our|\w+'s) (?:new"
        r" )?(?:favou?rite|go-to|preferred) (?P<k>[\w -]+)"
    ),
)  # fmt: skip
"""What somebody likes best of a kind ``k``."""
NAMED = (
    pattern(
        r"(?:the |our |my |his |her |their )?(?P<what>[\w ]+?) (?:is|are|was|'s) (?P<new>now )?(?:called|named"
        r"|renamed(?: to)?) (?P<v>[^,;]+)"
    ),
    pattern(
        r"(?:the |our |my |his |her |their )?(?P<what>[\w ]+?) (?P<new>(?:has been|have been|was|were|got)"
        r" (?:renamed|rebranded)) (?:to |as )?(?P<v>[^,;]+)"
    ),
    pattern(
        r"(?P<new>renamed|rebranded) (?:the |our |my |his |her |their )?(?P<what>[\w ]+?) (?:to |as"
        r" )?(?P<v>(?-i:[A-Z])[^,;]*)"
    ),
    pattern(r"(?P<new>changed) the name of (?:the |our |my )?(?P<what>[\w ]+?) (?:from [^,;]+ )?to (?P<v>[^,;]+)"),
)  # fmt: skip
"""What something is called."""
FORMER = re.compile(
    r"(?:\b(?:from|instead of|not|rather than|was|were|formerly|previously|than|longer)(?: on| at| in)?) (?:the "
    r"|every |a )?$",
    re.IGNORECASE,
)
"""Behind this stands what no longer is."""
PERSONAL = pattern(
    r"(?:(?:and [A-Z]\w+|now|just|recently|finally|no longer|still) )*(?:works?|lives?|resides|relocated|joined|quit"
    r"|resigned|retired|owns|leads"
    r"|manages|took|handed|dates|got (?:married|engaged|divorced|a job)|broke|split|loves|likes|prefers|eats|drinks"
    r"|plays|drives|cycles|studies|bakes|cooks|reads|writes|swims|goes|walks|teaches|sings|paints|commutes"
    r"|volunteers|smokes|sleeps|takes|left|stopped"
    r"|gave|moved (?:in|out)|is (?:an?|dating|married|engaged|seeing|living|working|based|vegan|vegetarian|in charge"
    r"|responsible|single)|doesn't)\b"
)
"""What only people do."""
PREFERENCE = pattern(r"(?:prefers?|likes?|loves?) (?P<v>[^,;]+?) (?:over|more than|better than|to) (?P<w>[^,;]+)")
USED = (
    pattern(r"uses? (?P<v>[^,;]+?) (?:as|for) (?:my |our |the |his |her )?(?P<k>[^,;]+)"),
    pattern(
        r"(?P<new>switched|moved|changed|migrated) (?:my |our |the |his |her )(?P<k>[\w -]+?) (?:from [^,;]+"
        r" )?(?:over )?to (?P<v>[^,;]+)"
    ),
)
"""What is used for something, ``k``."""
NOW_IS = pattern(
    r"(?:is|are|'s|'re) now\b|(?:is|are) [^,;]{1,40} (?:now|these days|instead|from now on)$|new [\w -]{2,30} (?:is"
    r"|are|:) |(?:has|have) been \w+(?:ed|en|id|ne|nt|lt|ld)\b"
    r"|instead\b|from now on\b|change of plan"
)
"""A plain "is", with a word that tells it from before."""
CONTACT = frozenset(
    "number phone mobile cell email mail address call reach contact text write message telephone line inbox"
    " e use".split()
)
GROUPS = frozenset(
    "group club program programme class team gym league choir band community course forum session server workshop"
    " church call meeting".split()
)
"""Whoever joins one of these has no other job."""
PLACES = frozenset(
    "city town village flat apartment house place country countryside coast suburb suburbs neighbourhood"
    " neighborhood street condo studio farm dorm"
    " downtown home building floor island centre center cottage cabin mountains beach district state loft"
    " parents".split()
)
"""A home is named, or one of these."""
WORKPLACES = frozenset(
    "hospital school bank firm company startup clinic agency university college cafe restaurant shop lab office"
    " bakery library museum government"
    " council factory store studio newspaper magazine kitchen bar hotel pharmacy practice bookstore bookshop".split()
)


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


DOUBTS = _set(
    "if unless whether suppose supposing imagine might maybe perhaps possibly would d could should wish wishes"
    " wished almost nearly considering considered"
    " considers thinking thought toying dream dreams dreamed dreaming hope hopes hoped hoping want wants wanted"
    " wanna tempted planned supposed rumor rumors"
    " rumour rumours fell came not unsure undecided pretend pretends pretended joke joked joking as in one some someday"
    " used offered asked invited probably likely expect expects expected wonder wonders wondered wondering forgot"
    " tried refused declined turned didn hasn"
    " haven hadn never decided chose did has have had t heard think thinks believe believes suspect suspects guess"
    " guesses apparently allegedly"
)
"""Without one of these a sentence is not looked through for doubts."""
TIMES = _set(
    "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays"
    " saturdays sundays daily weekend weekends january"
    " february march april may june july august september october november december jan feb mar apr jun jul aug sep"
    " sept oct nov dec spring summer autumn"
    " winter noon midnight clock morning mornings afternoon afternoons evening evenings night nights lunchtime lunch"
    " dawn every one two three four five six"
    " seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty ninety hundred once twice"
)
OF_FRAMES: dict[str, frozenset[str]] = {
    "home": _set(
        "live lives living reside resides residing based rent rents renting home moved relocated resettled settled"
        " settling new calls call bought house flat"
        " apartment place address"
    ),
    "job": _set(
        "first work works working employed job employer company started starting began joined new hired promoted took"
        " accepted got landed switched retrained moved quit"
        " resigned left lost retired laid fired let finished stepped handed unemployed " + _TRADES.replace("|", " ")
    ),
    "studies": _set(
        "study studies studying major majors majoring switched changed transferred enrolled started graduated dropped"
    ),
    "partner": _set(
        "date dates dating going relationship together seeing engaged married girlfriend boyfriend partner wife"
        " husband fiance fianc single broke broken split"
        " separated divorced parted engagement"
    ),
    "diet": _set("vegan vegetarian pescatarian keto gluten omnivore meat fish dairy everything steak cheese"),
    "way to work": _set("work office school campus commute commutes commuting"),
}
"""Words without one of which a text says nothing of that frame."""
OF_FAVOURITES = _set("favourite favorite go preferred")
OF_NAMES = _set("called named renamed rebranded name")
OF_CHARGE = _set(
    "owns leads runs manages maintains heads oversees handles coordinates after care responsible charge leading"
    " running managing handling owner lead"
    " maintainer manager head contact coordinator took taken takes taking handed passed transferred gave owned led"
    " run managed maintained headed handled"
    " reassigned assigned belongs person"
)
OF_ENDS = _set(
    "over done "
    "longer anymore more instead rather quit stopped gave given giving ditched off broke rid scrapped abandoned out"
    " unsubscribed swore canceled cancelled sold"
    " dropped returned replaced replacing replaces swapped traded exchanged from used discontinued retired"
    " decommissioned place moved"
)
OF_PREFERENCES = _set("prefer prefers like likes love loves")
OF_USES = _set("use uses switched moved changed migrated")
OF_NOW = _set("over more first now new been instead days plan plans")
OF_SHIFTS = _set("move moved shifted switched changed migrated transferred converted replaced swapped")
OF_SIGNS = _set(
    "not "
    "longer anymore instead rather starting effective moved moves rescheduled postponed pushed brought shifted"
    " delayed changed changes switched swapped replaced"
    " replaces upgraded downgraded bumped migrated converted raised lowered increased decreased reduced cut went"
    " gone rose risen dropped climbed jumped fell"
    " doubled halved extended shortened transferred stopped cancelled slipped rebooked grew shrank reschedule"
    " postpone change canceled new newly became become updated revised corrected correction down up now"
    " nowadays currently since lately recently finally"
)
TELLING = frozenset().union(
    OF_NAMES,
    OF_ENDS - _set("from out off more place"),
    OF_SHIFTS,
    EXCLUSIVE,
    _set("favourite favorite preferred @ owns leads runs manages maintains"),
    _set(
        "owned led managed maintained prefer prefers uses heads oversees handles coordinates responsible charge"
        " owner maintainer took taken takes handed belongs reassigned assigned"
    ),
    OF_FRAMES["home"] - _set("new call calls bought place house"),
    OF_FRAMES["job"] - _set("new got let lost accepted finished took"),
    OF_FRAMES["studies"],
    OF_FRAMES["partner"] - _set("going together date dates"),
    OF_FRAMES["diet"] - _set("everything"),
    _set("commute commutes commuting cycle cycling bike bus tram train flat"),
)
"""A sentence without any of these tells of no change, unless it has a value and a sign of one, or a plain "is now"."""
OF_VALUES = (TIMES | {"0"}) - _set("may every")


def may_tell(plain: frozenset[str]) -> bool:
    """Whether a text of these words may tell of a change."""
    return not (plain.isdisjoint(TELLING) and plain.isdisjoint(OF_NOW)) or not (
        plain.isdisjoint(OF_VALUES) or plain.isdisjoint(OF_SIGNS)
    )
