# ruff: noqa: E501
"""Measures CPU time and memory of every reader of text on hostile texts: ``python -m tests.hostile_texts``.

Each run is a forked child with a CPU limit, so that a text which never ends costs no more than that. Prints one JSON
line per run: reader, text, CPU seconds, MB above the memory of the parent, and the signal that ended the run or None.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import resource
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from zettel.annotate.extractive import ExtractiveAnnotator
from zettel.core import mentions
from zettel.core.drafts import passages_of
from zettel.core.privacy import SecretGuard
from zettel.errors import BadRecord, ZettelError
from zettel.evolve.lessons import outcomes
from zettel.evolve.profile import statements
from zettel.llm.answer_parsing import items
from zettel.model import Event, Kind, Note, Source
from zettel.ports import TermStats
from zettel.scoring.first_person import has_place, parse_own_question
from zettel.scoring.names import capitalised_words
from zettel.scoring.question_forms import forms_of
from zettel.search.passage import select_passage
from zettel.search.question import parse_question
from zettel.search.question_kind import asks_about_past, asks_for_many
from zettel.text.clauses import find_owner, parse_clauses
from zettel.text.dates import find_dates
from zettel.text.extraction import is_question, sentences, tags_of
from zettel.text.facts import facts
from zettel.text.filler import is_filler
from zettel.text.index import index_note
from zettel.text.instructions import flags_of
from zettel.text.keywords import find_terms
from zettel.text.markdown import lines_of
from zettel.text.mood import mood_of
from zettel.text.names import find_names
from zettel.text.parts import split_parts
from zettel.text.secret_shapes import secrets_in
from zettel.text.statements import parse_sentences
from zettel.text.states import is_state
from zettel.text.tokens import bare_title, phrase_key, tokenize
from zettel.text.tokens import readable as readable_words
from zettel.text.wording import normalized
from zettel.transcripts import BUILT_IN, HEAD_BYTES, format_named
from zettel.transcripts.diagnosis import looks_like
from zettel.transcripts.formats import discord_text, slack_text
from zettel.transcripts.formats.mail_text import own_text, text_of_html
from zettel.transcripts.parsing.content_blocks import parsed
from zettel.transcripts.parsing.front_matter import split_front_matter
from zettel.transcripts.parsing.json_keys import keys_in
from zettel.transcripts.parsing.timestamps import any_time
from zettel.transcripts.parsing.wikilinks import TitleIndex, link_titles
from zettel.transcripts.parsing.written_times import moment
from zettel.transcripts.redaction import Redactor
from zettel.transcripts.vault_notes import split_links

NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
SAMPLES = Path(__file__).parent / "data" / "transcripts"
MAX_SECONDS = 2.0
"""CPU seconds of a reader for a million characters on a quiet machine, in addition to the time of its records."""
SECONDS_PER_RECORD = 60e-6
SECONDS = {"redaction": 6.0, "redaction of an event": 4.0, "an added event": 8.0}
"""Readers that need longer, though not quadratic time: redaction looks each number up in the plans of countries, and an
event of a million characters becomes 700 notes."""
MAX_MB = 200
"""MB of a reader, in addition to a KB for each record."""
FIRST, CHEAP_SECONDS, CHEAP_MB = 50_000, 0.06, 8
"""Characters of the first measurement of a run, and the most that it may cost to be the last."""
MAX_ADDRESSES = 8 * 2**30
"""Bytes of address space of a run."""

# ------------------------------------------------------------------------------------------------------------- texts

PIECES = (
    # single characters, as a long run
    *"a A 1 . , : ; ! ? - _ = + * # ~ ` ' \" < > ( ) [ ] { } | / \\ @ & % $ ^ é 的 。 ¿ \u200b \u00ad \u0301".split(),
    " ", "\t", "\n", "\r", "\v", "\x1b", "\x00", "\u2028", "\ue200", "\ue202",
    # openings without an end
    "<a ", "<a b=c ", "<a b='", "</a", "<!", "<!--", "<![CDATA[", "<?", "<v ", "<v.", "<v a", "<v a>", "<c>", "&#", "&lt;", "&amp",
    "[[", "[[a|", "![", "](", "[a](", "**a", "__a", "`a", "~~~\n", "```\n", '"a ', "'a ", "(a ", "«a ", "{\\", "{a: ", "[a, ", "<@", "<https:|",
    # pairs
    "[a]", "(a)", "<a>", "<div>", "<blockquote>", "<ul><li>", "</p>", "**a** ", "``", '""', "'a'", "[[a]]", "[a](b) ", "&#0;",
    # lists, tables, headings, quotes, headers of mails and files
    "a,", "a, ", "a\n", "a\n\n", "- ", "- a\n", "> ", "> a\n", "1. a\n", "| a ", "|-|\n", "|a|\n|-|\n", "# a\n", "#a ", "---\n", "--- ", "===\n", "? ", "- - ", "a: b\n", "a:\n  ", "a: ", "\n ", "\n\t", " \n", "\n\n",
    "From: a@b.c\n", "On Monday Ann wrote:\n", "-- \n", "-----Original Message-----\n", "-----BEGIN RSA PRIVATE KEY-----\n", "_" * 12 + "\n", "X: y\n",
    "00:00:01.000 --> 00:00:02.000\na\n\n", "00:01 --> ", "0:05\n", "31/12/2023, 21:05 - Ann: a\n", "[2024-05-01 09:00] Ann: a\n", "[09:00] ", "Ann   0:05\na\n", "Ann: a\n",
    # numbers, dates, times, addresses, keys
    "1 ", "1,", "1.", "1-", "1:", "12:30 ", "2024-", "2024-05-01 ", "1/1/", "1/1/2024 ", "may ", "May 5 ", "5 May ", "next week ", "last ", "every ", "in 3 days ", "monday to ", "from may to ", "between the 3rd and ", "the ", "1st ", "christmas ", "since ",
    "+1 ", "+4791234567 ", "4 1 ", "4111 1111 1111 1111 ", "a@", "a@b.", "a@b.c ", "a.", "a.b@", "http://", "http://a ", "www.a.b ", "eyJ", "eyJa.", "sk-", "AKIA", "ghp_a", "xoxb-1", "a://b:c", "SG.", "key=", "password: ",
    # words that the rules of language look for
    "A ", "A B ", "Aa Bb ", "Ann and ", "A. ", "Mr. ", "I ", "I'm ", "a's ", "my a's ", "my ", "my sister's ", "I live in ", "I like ", "I don't ", "not ", "no longer ", "if ", "would ", "if would ", "and ", "of ", "of my a ", "who ", "who is ", "was ", "used to ", "a'd ", "about a ", "to ", "always ", "never ", "when a ", "ignore ", "ignore all ", "previous instructions ", "you must ", "system: ", "ha", "lo", "haha ", "yes ", "what ", "a? ", "a. ", "a! ", "a; ", "a-", "a'", "a_", "aB", "a1", "1a", "が", "日本 ", "ü ", "naïve ", "ﬁ", "İ", "ß",
    '{"a":', '["a",', '{"a":1}\n', '{"content":"a"}\n', '"a\\', "\\u0000", "&a [", "*a ", "!a ", "a: &a [a]\nb: *a\n", "{{", "}}", "${",
)  # fmt: skip
"""Pieces that are repeated: most are the beginning of something that does not end."""


def _aliases(size: int) -> str:
    """YAML whose lists name the lists before nine times each: nine times as many items on every line."""
    lists = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9 if n else ['x'] * 9)}]" for n in range(9)]
    return "---\n" + "\n".join(lists) + "\n---\n" + "a" * size


def _one_list(size: int) -> str:
    """YAML with one long list, and many properties that name it."""
    size = min(size, 60_000)
    names = "".join(f"p{n}: *a\n" for n in range(size // 20))
    return f"---\na: &a [{'x,' * (size // 5)}x]\n{names}---\nbody"


def _merges(size: int) -> str:
    items = "".join(f"m{n}: &m{n}\n  <<: *m{n - 1}\n  k{n}: v\n" for n in range(1, min(size, 60_000) // 40))
    return f"---\nm0: &m0 {{k: v}}\n{items}---\nbody"


def _repeated(piece: str, size: int) -> str:
    return (piece * (size // len(piece) + 1))[:size]


TEXTS: dict[str, Callable[[int], str]] = {
    **{f"{piece!r} repeated": partial(_repeated, piece) for piece in PIECES},
    "brackets in brackets": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "parentheses in parentheses": lambda size: "(" * (size // 2) + ")" * (size // 2),
    "elements in elements": lambda size: "<div>" * (size // 11) + "</div>" * (size // 11),
    "JSON in JSON": lambda size: '{"a":' * (size // 6) + "1" + "}" * (size // 6),
    "ever deeper lines": lambda size: "\n".join(" " * n + "- a" for n in range(int((2 * size) ** 0.5))),
    "ever deeper keys": lambda size: "---\n" + "\n".join(" " * n + "a:" for n in range(300)) + "\n---\n" + "a" * size,
    "ever longer quotes": lambda size: "\n".join(">" * n + " a" for n in range(int((2 * size) ** 0.5))),
    "ever longer fences": lambda size: "\n".join("`" * n for n in range(3, int((2 * size) ** 0.5))),
    "words, each once": lambda size: " ".join(f"w{n}" for n in range(size // 7)),
    "names, each once": lambda size: " ".join(f"Na{n:x} Nb{n:x}," for n in range(size // 12)),
    "tags, each once": lambda size: " ".join(f"#t{n}" for n in range(size // 8)),
    "headings, each once": lambda size: "\n".join(f"# h{n}" for n in range(size // 9)),
    "links, each once": lambda size: " ".join(f"[[t{n}]]" for n in range(size // 10)),
    "keys, each once": lambda size: "---\n" + "\n".join(f"k{n}: v" for n in range(size // 10)) + "\n---\n",
    "JSON keys, each once": lambda size: "{" + ",".join(f'"k{n}":1' for n in range(size // 10)) + "}",
    "aliases of aliases": _aliases,
    "aliases of one list": _one_list,
    "merges of merges": _merges,
    "parts in parts of a mail": lambda size: "".join(
        f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(200)
    ) + "a\n" * (size // 2 - 5000),
    "mail parts with long headers": lambda size: (
        "Content-Type: multipart/mixed; boundary=b\n\n" + f"--b\nContent-Type: text/plain{';' * 9000}\n\na\n" * (size // 9030)
    ),
    "mail with a long line": lambda size: "-----BEGIN" + "-" * size,
    "dashes, then a word": lambda size: "-" * size + "a",
    "blanks between words": lambda size: "a" + " " * (size - 2) + "b",
    "blanks at the ends of lines": lambda size: ("a" + " " * 1000 + "\n") * (size // 1002),
    "blank lines": lambda size: "a" + " \n" * (size // 2) + "b",
    "random signs": lambda size: "".join(random.Random(7).choices("<>[](){}'\"`*_-#|:=&;!?.,@/\\ \n\tab1", k=size)),
}  # fmt: skip
"""Texts of a given number of characters, by name."""

# ----------------------------------------------------------------------------------------------------------- readers


def _note(text: str, **fields: Any) -> Note:
    return Note(
        id="n_1", seq=1, content=text, occurred_at=NOON, recorded_at=NOON, event_ids=("e_1",),
        **{"kind": Kind.EPISODIC, "speaker": "Ann", **fields},
    )  # fmt: skip


def _event(text: str) -> None:
    """Do what ``add`` does before it writes: split, annotate, flag and index."""
    passages = passages_of(Event(content=text.replace("\0", " "), speaker="Ann", occurred_at=NOON))
    annotations = asyncio.run(ExtractiveAnnotator().annotate(passages, TermStats(0, {})))
    for passage, annotation in zip(passages, annotations, strict=True):
        flags_of("Ann", None, passage.content)
        index_note(_note(passage.content, **annotation._asdict()))
        mentions.phrases(passage.content)


def _question(text: str) -> None:
    parse_question(text, vector=None, today=None)
    asks_for_many(text), asks_about_past(text), forms_of(text)
    parse_own_question(text, "home", frozenset({"live"}))


def _passage(text: str) -> None:
    select_passage(text, parse_question("When does Ann leave?", vector=None, today=None))


def _times(text: str) -> None:
    for read in (any_time, moment):
        with suppress(ValueError):  # not a time
            read(text)


def _message(text: str) -> None:
    slack_text.readable(text, {}, {}), discord_text.readable(text, {}), parsed(text)


FUNCTIONS: dict[str, Callable[[str], Any]] = {
    "html": text_of_html,
    "mail": own_text,
    "front matter": split_front_matter,
    "front matter of the text": lambda text: split_front_matter(f"---\n{text[:60_000]}\n---\nbody"),
    "vault links": split_links,
    "wikilinks": lambda text: link_titles(text, "a.md", TitleIndex(())),
    "times": _times,
    "messages": _message,
    "JSON keys": lambda text: keys_in(text[:HEAD_BYTES].encode()),
    "answers of a model": lambda text: (items(text), items(text, cut=True)),
    "redaction": lambda text: Redactor("NO", Counter()).text(text),
    "redaction of an event": lambda text: Redactor(None, Counter()).event(
        Event(content="a", title=text.replace("\0", " "), source=Source(file="a"))
    ),
    "secrets": secrets_in,
    "privacy": lambda text: SecretGuard("redact").event(Event(content=text.replace("\0", " ") + ".")),
    "an added event": _event,
    "lines": lines_of,
    "parts": split_parts,
    "words": tokenize,
    "wording": normalized,
    "phrases": phrase_key,
    "titles": bare_title,
    "readable words": readable_words,
    "capitalised words": capitalised_words,
    "names": find_names,
    "terms": find_terms,
    "dates": lambda text: find_dates(text, NOON),
    "sentences": lambda text: (sentences(text), is_question(text), tags_of(text, False)),
    "flags": flags_of,
    "filler": is_filler,
    "states": is_state,
    "facts": lambda text: facts(_note(text)),
    "statements": lambda text: statements(_note(text)),
    "lessons": lambda text: outcomes(_note(text), [("n_0", text)]),
    "clauses": lambda text: [parse_clauses(text), find_owner(text)],
    "moods": lambda text: mood_of(text.lower()),
    "sentences about people": lambda text: [
        (each.matter, each.mood, each.kin, each.relative, each.changed, each.past, each.days, each.amounts, each.names)
        for each in parse_sentences(text)
    ],
    "place": has_place,
    "question": _question,
    "passage": _passage,
}  # fmt: skip
"""Functions that read a text."""

TEMPLATES = {
    "subtitles": "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n{}\n",
    "mbox": "From a@b.c Mon Jan  8 08:00:00 2024\nFrom: Ann <a@b.c>\nDate: Mon, 8 Jan 2024 09:00:00 +0100\nSubject: s\nContent-Type: text/html\n\n{}\n",
    "mbox parts": "From a@b.c Mon Jan  8 08:00:00 2024\nFrom: Ann <a@b.c>\n{}\n",
    "mbox subject": "From a@b.c Mon Jan  8 08:00:00 2024\nFrom: Ann <a@b.c>\nSubject: {line}\nDate: Mon, 8 Jan 2024 09:00:00 +0100\n\na\n",
    "mbox sender": "From a@b.c Mon Jan  8 08:00:00 2024\nFrom: {line}\nTo: {line}\nDate: Mon, 8 Jan 2024 09:00:00 +0100\n\na\n",
    "mbox date": "From a@b.c Mon Jan  8 08:00:00 2024\nFrom: Ann <a@b.c>\nDate: {line}\nReferences: {line}\n\na\n",
    "mbox type": "From a@b.c Mon Jan  8 08:00:00 2024\nFrom: Ann <a@b.c>\nContent-Type: multipart/mixed; boundary=b; {line}\n\n--b\nContent-Disposition: attachment; filename={line}\n\na\n--b--\n",
    "mbox encoded": "From a@b.c Mon Jan  8 08:00:00 2024\nFrom: Ann <a@b.c>\nContent-Type: text/plain\nContent-Transfer-Encoding: base64\n\n{}\n",
    "plain": "[2024-05-01 09:00] Ann: {}",
    "whatsapp": "31/12/2023, 21:05 - Ann: {}",
    "markdown": "---\ntitle: t\n---\n{}",
    "markdown properties": "---\n{}\n---\nbody",
    "csv": "author,date,content\nann,2024-01-01,{}\n",
    "csv quoted": 'author,date,content\nann,2024-01-01,"{}"\n',
    "jsonl": '{{"content": {json}, "speaker": "Ann"}}\n',
    "jsonl payload": '{{"content": "a", "payload": {}}}\n',
    "messages": '{{"role": "user", "content": {json}}}\n',
    "chatgpt": '[{{"title": {json}, "mapping": {{"a": {{"id": "a", "message": {{"id": "a", "author": {{"role": "user"}}, "content": {{"content_type": "text", "parts": [{json}]}}}}, "parent": null, "children": []}}}}}}]',
}  # fmt: skip
"""Files of a format, by the format's name and, after a blank, a place in the file."""

SUFFIXES = {
    "subtitles": ".vtt",
    "mbox": ".mbox",
    "markdown": ".md",
    "csv": ".csv",
    "jsonl": ".jsonl",
    "messages": ".jsonl",
}
FILES = {
    "slack": "slack/general/2024-01-08.json", "telegram": "telegram-chat.json", "discord": "discord.json", "claude": "claude.json",
    "chatgpt": "chatgpt.json", "amem": "amem.json", "mem0": "mem0.json", "graphiti": "graphiti.json", "locomo": "locomo.json",
    "longmemeval": "longmemeval.json", "traces": "traces-otel.jsonl",
    "server-memory": "server-memory.jsonl",
}  # fmt: skip
"""Samples of formats whose longest text is replaced."""


def _read(name: str, place: str, data: bytes) -> int:
    """Sniff and read a file; return the number of its records."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{SUFFIXES.get(name, '.json' if name in FILES else '.txt')}"
        path.write_bytes(data)
        format = format_named(name)
        format.sniff(path, data[:HEAD_BYTES])
        if not place:
            looks_like(path, data[:HEAD_BYTES])
        count = 0
        with suppress(BadRecord):
            for _ in format.read(path):
                count += 1
        return count


def _raw(name: str, text: str) -> int:
    return _read(name, "", text.encode(errors="replace"))


def _template(key: str, text: str) -> int:
    name, _, place = key.partition(" ")
    line = " ".join(text.split("\n")).replace("\r", " ")
    body = TEMPLATES[key]
    data = (
        body.format(text, line=line, json=json.dumps(text))
        if "{{" in body or "{line}" in body
        else body.replace("{}", text)
    )
    return _read(name, place or "text", data.encode(errors="replace"))


def _sample(name: str, text: str) -> int:
    """Read a sample whose longest text is replaced."""
    lines = (SAMPLES / FILES[name]).read_text()
    rows = [json.loads(line) for line in lines.splitlines()] if FILES[name].endswith("l") else [json.loads(lines)]
    longest = max(_leaves(rows), key=len)
    data = "\n".join(json.dumps(_replaced(row, longest, text)) for row in rows)
    return _read(name, "sample", data.encode())


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _leaves(part)


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(part, old, new) for key, part in value.items()}
    if isinstance(value, list):
        return [_replaced(part, old, new) for part in value]
    return new if value == old else value


READERS: dict[str, Callable[[str], Any]] = {
    **FUNCTIONS,
    **{f"file of {name}": partial(_raw, name) for name in BUILT_IN if name != "parquet"},
    **{f"text in {key}": partial(_template, key) for key in TEMPLATES},
    **{f"text in a sample of {name}": partial(_sample, name) for name in FILES},
}
"""Everything that reads text from outside."""

# -------------------------------------------------------------------------------------------------------------- runs


class Cost(NamedTuple):
    """The cost of one run of ``size`` characters: CPU seconds, MB above the memory of the parent, records of a file, and the exit status."""

    reader: str
    text: str
    size: int
    cpu: float
    mb: int
    records: int
    status: int
    """Negative: the signal that ended the run, such as -9 at the CPU limit; 1: an error other than zettel's."""

    def is_acceptable(self, slowness: float) -> bool:
        """Return whether the run stayed within the limits, on a machine so many times as slow as a quiet one."""
        seconds = SECONDS.get(self.reader, MAX_SECONDS) + self.records * SECONDS_PER_RECORD
        return self.status == 0 and self.cpu <= seconds * slowness and self.mb <= MAX_MB + self.records / 1000


def measure(reader: str, text: str, size: int, limit: int) -> Cost:
    """Run a reader on a text of ``size`` characters in a child, which is killed after ``limit`` CPU seconds."""
    before = _resident()
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESSES, MAX_ADDRESSES))
        status = 1
        try:
            with suppress(ZettelError):  # the reader refuses the text
                records = READERS[reader](TEXTS[text](size))
                os.write(send, str(records if type(records) is int else 0).encode())
            status = 0
        finally:  # a child must not return into the loop of its parent
            if status:
                traceback.print_exc(limit=-2)
            os._exit(status)
    os.close(send)
    with os.fdopen(receive) as answer:
        records = int(answer.read() or 0)
    _, waited, used = os.wait4(child, 0)
    memory = max(0, used.ru_maxrss * 1024 - before) / 2**20
    seconds = round(used.ru_utime + used.ru_stime, 2)
    return Cost(reader, text, size, seconds, round(memory), records, os.waitstatus_to_exitcode(waited))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


KNOWN = (
    ("html", "'<a b=c ' repeated"),
    ("html", "'<!--' repeated"),
    ("text in subtitles", "'<v ' repeated"),
    ("file of markdown", "aliases of one list"),
    ("text in markdown properties", "'[' repeated"),
    ("text in mbox type", "';' repeated"),
    ("text in mbox parts", "parts in parts of a mail"),
    ("text in mbox parts", "mail parts with long headers"),
    ("answers of a model", "'[[a]]' repeated"),
    ("clauses", "'a-' repeated"),
    ("clauses", "'«a ' repeated"),
    ("moods", "'if ' repeated"),
    ("lessons", "blanks between words"),
    ("redaction", "'+4791234567 ' repeated"),
    ("dates", "'May 5 ' repeated"),
    ("question", "'2024-' repeated"),
)
"""Runs that took quadratic time once."""


def measured(reader: str, text: str, size: int, limit: int) -> Cost:
    """Measure a run at ``FIRST`` characters; if that is not cheap, at ``size``, where quadratic time shows."""
    cost = measure(reader, text, min(size, FIRST), limit)
    is_cheap = cost.cpu <= CHEAP_SECONDS and cost.mb <= CHEAP_MB and not cost.status
    return cost if is_cheap else measure(reader, text, size, limit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1_000_000, help="characters of a text")
    parser.add_argument("--limit", type=int, default=40, help="CPU seconds after which a run is stopped")
    parser.add_argument("--reader", default="", help="only readers whose names contain this")
    parser.add_argument("--text", default="", help="only texts whose names contain this")
    parser.add_argument("--runs", type=int, default=0, help="the known runs, and so many others by chance; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slowness", type=float, default=1.0, help="CPU time here, divided by that on a quiet machine")
    options = parser.parse_args()
    runs = [(reader, text) for reader in READERS for text in TEXTS if options.reader in reader and options.text in text]
    if options.runs:
        runs = [*KNOWN, *random.Random(options.seed).sample(runs, min(options.runs, len(runs)))]
    for warm in READERS:  # imports and caches, which are no cost of a text
        with suppress(ZettelError):
            READERS[warm]("I live in Porto.")
    gc.freeze()
    for reader, text in runs:
        cost = measured(reader, text, options.size, options.limit)
        print(json.dumps({**cost._asdict(), "is_acceptable": cost.is_acceptable(options.slowness)}), flush=True)


if __name__ == "__main__":
    main()
