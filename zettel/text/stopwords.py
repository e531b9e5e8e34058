"""Function words, which are not tokens because they are too frequent, and words that are never keywords.

Closed classes only (articles, pronouns, prepositions, conjunctions, auxiliaries and their contractions). "May" is a
token because it is a month; so are "no" and "not", which change the meaning. English has a full list, Russian and
Arabic a short one. Other languages in Latin letters have none: German "die" and French "son" are English words too.
"""

from __future__ import annotations

ENGLISH = frozenset(
    """
    a an the this that these those such
    i me my mine myself we us our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves one ones
    who whom whose which what when where why how whoever whatever whichever whenever wherever however
    am is are was were be been being do does did doing done has have had having
    can could shall should will would might must ought cannot
    and or but nor so yet if then else than because since while whereas although though unless until as
    of in on at by for with without to from into onto upon about above below over under between among against
    during before after through across toward towards within along around behind beside besides beyond despite
    except near off out up down per via
    here there also too very just only even still again ever never always often already almost
    some any each every either neither both all more most much many few less least other others another own same
    im ive id ill youre youve youll youd hes shes theyre theyve weve dont doesnt didnt isnt arent wasnt werent
    hasnt havent hadnt wont wouldnt cant couldnt shouldnt aint thats whats theres
    let lets gonna wanna gotta etc eg ie vs
    """.split()
)

RUSSIAN = frozenset(
    """
    и в во на с со к ко у о об от до из за по под над при для без через а но или что чтобы как так же ли бы не ни
    я ты он она оно мы вы они меня мне тебя тебе его ему её ее ей их им нас нам вас вам себя себе мой моя моё мои
    твой наш ваш свой этот эта это эти тот та то те кто где когда если был была было были быть есть уже ещё еще
    """.split()
)

ARABIC = frozenset(
    """
    في من على إلى الى عن مع هذا هذه ذلك تلك التي الذي الذين أن إن ان لا ما لم لن قد كان كانت هو هي هم أنا انا أنت
    نحن أو او ثم كل بعد قبل بين كما عند حتى لكن
    """.split()
)

FILLER = frozenset(
    """
    hi hey hello bye goodbye thanks thank thx welcome please sorry congrats congratulations cheers
    yeah yes yep yup no nope not ok okay sure right oh ah uh um hmm haha hahaha lol omg wow yay aww ugh btw imo fyi asap
    really actually definitely probably absolutely totally completely especially usually recently finally basically
    simply honestly seriously certainly exactly quickly slowly maybe perhaps quite rather pretty somehow anyway instead
    though well now lately sometimes soon later once twice back away together else fully truly
    get gets got getting go goes going went gone come comes came coming make makes made making take takes took taking
    know knows knew think thinks thought thinking want wants wanted like likes liked look looks looked looking see sees
    saw seen say says said tell tells told feel feels felt feeling let keep keeps kept give gives gave put need needs
    needed try tries tried trying hope hopes hoping seem seems sound sounds guess mean means use used using
    thing things stuff lot lots way ways bit kind sort something anything everything nothing someone anyone everyone
    good great nice cool awesome amazing lovely glad happy best better bad big little new old long first last next
    super wonderful fantastic incredible excited exciting cant wait
    i'm you're
    """.split()
)
"""Conversational words without a topic: never keywords, and never names at the start of a sentence."""

CALENDAR = frozenset(
    """
    today tonight tomorrow yesterday day days week weeks weekend weekends month months year years hour hours minute
    minutes time times morning afternoon evening night ago am pm
    monday tuesday wednesday thursday friday saturday sunday
    january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec
    вчера сегодня завтра أمس اليوم غدا 昨天 今天 明天 昨日 今日 明日 어제 오늘 내일
    """.split()
)
"""Words of dates, which are found separately: neither keywords nor names."""
