"""The documentation has few long sentences and none of the words to avoid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import prose


def test_few_sentences_are_long() -> None:
    long, count = prose.long_sentences()
    share = len(long) / count
    listed = "\n".join(f"{found.page}: {found.remark}: {found.sentence}" for found in long)
    assert share <= prose.MAX_LONG_SHARE, f"{share:.1%} of the sentences are long: split some of these\n{listed}"


def test_no_word_to_avoid_is_used() -> None:
    assert [f"{found.page}: {found.remark} ({found.sentence})" for found in prose.avoided_words()] == []


@pytest.mark.parametrize(
    "page", [page for page in prose.PAGES if page.parent != prose.ROOT], ids=lambda page: page.stem
)
def test_pages_open_with_a_short_paragraph(page: Path) -> None:
    _title, opening, *_ = re.split(r"\n{2,}", page.read_text(encoding="utf-8"))
    assert re.match(r"\w|`", opening), "a page opens with what readers can do there, and when they want it"
    assert len(opening.split()) < 100, "move the details below the first paragraph"


def test_sentences_are_found_outside_of_code_and_tables() -> None:
    page = """# A heading

One sentence with `code.method(1)` and [a link. Inside](http://a.example/b). Another one, e.g. this.

| a | table. |
| --- | --- |

- an item: It has two parts.
- “Quoted.” Text

```python
print("Not. Counted.")
```
"""
    assert list(prose.sentences(page)) == [
        "One sentence with Code and a link.",
        "Inside.",
        "Another one, e.g this.",
        "an item:",
        "It has two parts.",
        "“Quoted.",
        "Text",
    ]
    assert prose.words("It has 2,000 parts, and Code.") == 6
