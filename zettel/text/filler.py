"""Detects turns without content ("ok", "thanks!", "haha, see you"), which no model needs to annotate.

After LightMem (Fang et al. 2025). A turn is filler if it consists only of pleasantries listed here and small words
between them. A name, a number, an unknown word or a question with content excludes it. "Yes" and "no" answer something,
so they are not filler.
"""

from __future__ import annotations

import re
from functools import cache

from zettel.model import Role
from zettel.text.extraction import is_question
from zettel.text.tokens import phrase_key

MAX_CHARS = 160
"""A longer turn has content."""
RESULT_ROLES: frozenset[Role] = frozenset({"tool", "system"})
"""Roles for which a plain "ok" is a result."""

_PLEASANTRIES = """
    ok, okay, okey, okie dokie, kk, alright, all right, alrighty, fine, got it, gotcha, i see, noted, no problem,
    no worries, np, anytime, any time, my pleasure, fair enough, makes sense
    hi, hey, hey there, hello, hiya, howdy, yo, good morning, good evening, good night, good afternoon, how are you,
    how are you doing, how have you been, how's it going, how's everything, what's up, what's new, long time no see,
    good to see you, great to see you, nice to see you, good to hear from you, great to hear from you,
    nice to hear from you, long time no talk, and you, how about you, what about you
    bye, bye bye, goodbye, good bye, see you, see ya, cya, see you soon, see you later, see you then, see you there,
    talk soon, talk later, talk to you soon, talk to you later, ttyl, take care, catch you later, catch up soon,
    let's catch up soon, have a good one, have a good day, have a great day, have a nice day, have fun, good luck,
    best of luck, keep in touch, stay in touch, cheers
    thanks, thank you, thank u, thx, ty, tysm, thanks a lot, thanks a bunch, many thanks, thanks a ton,
    thanks a million, much appreciated, appreciate it, i appreciate it, i really appreciate it, welcome, you bet,
    don't mention it
    great, nice, cool, neat, good, sweet, awesome, amazing, perfect, excellent, wonderful, fantastic, lovely, brilliant,
    super, wow, yay, woohoo, woo, hooray, nice one, nice work, well done, good job, great job, way to go, congrats,
    congratulations, sounds good, sounds great, sounds nice, sounds fun, sounds perfect, sounds like a plan,
    sounds awesome, sounds amazing, glad to hear that, glad to hear it, good to hear, great to hear, good to know,
    happy to hear that, looking forward to it, can't wait, i can't wait, love it, i love it, love that, how sweet,
    how nice, hope so, oh no, oh dear, oh my god, omg, sorry to hear that, that's too bad, what a shame
    lol, lmao, rofl, hm, um, uh, oh, ah, aha, eh, mhm, huh, phew, oops, really, no way, seriously, interesting, i know,
    you know, anyway, anyways, well
    danke, danke schön, vielen dank, besten dank, herzlichen dank, bitte, bitte schön, gern, gerne, gern geschehen,
    alles klar, passt, prima, toll, schön, wunderbar, hallo, guten morgen, guten tag, guten abend, gute nacht, tschüss,
    tschüs, bis bald, bis dann, bis später, mach's gut, servus, wie geht's, wie geht es dir
    merci, merci beaucoup, merci bien, de rien, je t'en prie, je vous en prie, d'accord, parfait, génial, salut,
    bonjour, bonsoir, bonne nuit, au revoir, à bientôt, à plus, à tout à l'heure, ça va, très bien
    gracias, muchas gracias, mil gracias, de nada, vale, perfecto, genial, hola, buenos días, buenas tardes,
    buenas noches, adiós, hasta luego, hasta pronto, nos vemos, qué bien, qué tal, muy bien
    grazie, grazie mille, prego, di niente, va bene, perfetto, ciao, buongiorno, buonasera, buonanotte, arrivederci,
    a presto, a dopo, come va, molto bene
    obrigado, obrigada, muito obrigado, muito obrigada, valeu, beleza, tudo bem, perfeito, olá, oi, bom dia, boa tarde,
    boa noite, tchau, até logo, até mais
    dank je, dank je wel, dankjewel, bedankt, graag gedaan, goed zo, oké, hoi, doei, tot ziens, tot straks
    спасибо, большое спасибо, спасибо большое, пожалуйста, не за что, хорошо, ладно, понятно, ясно, отлично, супер,
    круто, привет, здравствуйте, доброе утро, добрый день, добрый вечер, спокойной ночи, пока, до свидания, до встречи,
    увидимся, как дела, ок, окей
    谢谢, 谢谢你, 谢谢您, 多谢, 谢谢啦, 不客气, 没关系, 没事, 好的, 好吧, 好呀, 好啊, 嗯, 嗯嗯, 哦
    知道了, 明白, 明白了, 收到, 太好了, 你好, 您好, 早上好, 晚安, 再见, 拜拜, 回头见
    ありがとう, ありがとうございます, ありがとうございました, どうも, どういたしまして, 了解, 了解です
    了解しました, わかりました, 分かりました, なるほど, こんにちは, こんばんは, おはよう, おはようございます
    おやすみ, おやすみなさい, さようなら, またね, じゃあね, よろしくお願いします, すごい, いいね
    감사합니다, 고마워, 고마워요, 고맙습니다, 알겠습니다, 알겠어요, 알았어, 좋아, 좋아요
    안녕, 안녕하세요, 안녕히 계세요, 잘 자, 또 봐, 천만에요
"""
"""Thanks, greetings, farewells, praise and exclamations of some languages, separated by commas or line ends."""
_BETWEEN = frozenset(
    """
    a an and or but so too very much really just then that this these those it its thats is are be to for of with at
    i im you your youre u ya me we us all again also both there such truly friend friends guys everyone everybody buddy
    dude mate bro
    und aber auch so sehr dir euch ihnen dann das ist et mais aussi très toi vous y e pero también muy ti te
    и а но очень тебе вам тоже
    """.split()
)
"""Words allowed between, but not filler alone: "I am" or "you too" may answer something."""
# The last two are Korean laughter, as phrase_key returns it.
_DRAWN_OUT = re.compile(
    r"h*(?:ha){2,}h?|h*(?:he){2,}h?|(?:hi){3,}|(?:ja){2,}|(?:ха){2,}|lo+l+|a+w+|o+h+|a+h+|w+o+w+|h+m+|m+h+m+|u+m+|u+h+|"
    r"ya+y+|so{2,}|thanks+|oka+y+|coo+l|ni+ce|grea+t|hey+|bye+|哈+|笑+|w{2,}|\u110f{2,}|\u1112{2,}"
)


@cache
def _pleasantries() -> tuple[frozenset[str], int]:
    """Return the normal forms of all pleasantries, and the number of words of the longest."""
    phrases = frozenset(phrase_key(phrase) for phrase in re.split(r"[,\n]", _PLEASANTRIES) if phrase.strip())
    return phrases, max(phrase.count(" ") + 1 for phrase in phrases)


def is_filler(text: str, role: Role | None = None) -> bool:
    """Return whether a turn is only pleasantries, or has no letter and no digit; never for results of tools."""
    if len(text) > MAX_CHARS or role in RESULT_ROLES:
        return False
    words = phrase_key(text).split()
    between = frozenset[str]() if is_question(text) else _BETWEEN
    return not words or _is_pleasant(words, between)


def _is_pleasant(words: list[str], between: frozenset[str]) -> bool:
    """Return whether the words split into one or more pleasantries and words of ``between``."""
    phrases, longest = _pleasantries()
    best = [0] + [-1] * len(words)  # pleasantries in the first n words; -1: they cannot be cut so
    for end in range(1, len(words) + 1):
        for start in range(max(0, end - longest), end):
            if best[start] >= 0:
                phrase = " ".join(words[start:end])
                if phrase in phrases or _DRAWN_OUT.fullmatch(phrase):
                    best[end] = max(best[end], best[start] + 1)
                elif phrase in between:
                    best[end] = max(best[end], best[start])
    return best[-1] > 0
