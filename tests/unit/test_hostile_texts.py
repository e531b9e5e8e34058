"""No text of a million characters takes quadratic time or much memory, whatever reads it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zettel.transcripts.formats.mail_text import text_of_html
from zettel.transcripts.parsing.front_matter import split_front_matter
from zettel.transcripts.parsing.html_tokens import EndTag, StartTag, html_tokens, unescaped

SAMPLE = 60
SLOWNESS = 3.0
"""CPU time beside other tests, divided by that on a quiet machine. Quadratic time is far more than this."""


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and forks")


def test_a_sample_of_hostile_texts_costs_seconds_at_most() -> None:
    costs = costs_of(SAMPLE, SLOWNESS)
    assert len(costs) > SAMPLE
    assert [cost for cost in costs if not cost["is_acceptable"]] == []


@pytest.mark.soak
@pytest.mark.soak_only
def test_every_hostile_text_costs_seconds_at_most(record_property: Callable[[str, object], None]) -> None:
    costs = costs_of(0)
    slowest = max(costs, key=lambda cost: cost["cpu"])
    record_property("runs", len(costs))
    record_property("slowest", {name: slowest[name] for name in ("reader", "text", "size", "cpu")})
    record_property("most_mb", max(cost["mb"] for cost in costs))
    assert [cost for cost in costs if not cost["is_acceptable"]] == []


def costs_of(runs: int, slowness: float = 1.0) -> list[dict[str, Any]]:
    """Return the costs of the known runs and of so many others; of all for 0."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile_texts", f"--runs={runs}", "--seed=11", f"--slowness={slowness}"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_html_is_read_as_a_browser_reads_it() -> None:
    html = "a<p CLASS='x y' id=z hidden title=\"a>b\">b &amp; c<br/>d</P ><!-- <b> -->e<script>a<b '</p>'</script>f < g"
    assert list(html_tokens(html)) == [
        "a", StartTag("p", {"class": "x y", "id": "z", "hidden": "", "title": "a>b"}), "b & c", StartTag("br", {}),
        EndTag("br"), "d", EndTag("p"), "e", StartTag("script", {}), EndTag("script"), "f ", "< g",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a <b", "a <b"),  # no tag ends
        ("a <b c='d", "a <b c='d"),
        ("a <b c='d>e", "a e"),  # an open quote does not hide the text
        ("a<!-- b", "a"),
        ("a<!b>c</>d<?e?>f", "acdf"),
        ("a<![if !mso]>b<![endif]>c", "abc"),
        ("<style>a</style>b<title/>c", "bc"),
        ("a&#" + "1" * 10_000 + ";b", "a\ufffdb"),
        ("&#65;&lt;&nbsp;&unknown;", "A< &unknown;"),
    ],
)
def test_invalid_html_keeps_its_text(html: str, text: str) -> None:
    assert text_of_html(html) == text


def test_unescaped_replaces_references() -> None:
    assert unescaped("a &amp; b &#x41; &#99999999999;") == "a & b A \ufffd"


def test_aliases_do_not_multiply_front_matter() -> None:
    few = "---\na: &names [Ann, Bo]\nb: *names\n---\nbody"
    assert split_front_matter(few).properties == {"a": ["Ann", "Bo"], "b": ["Ann", "Bo"]}
    many = f"---\na: &a [{'x,' * 1000}x]\n" + "".join(f"p{n}: [{'*a, ' * 150}*a]\n" for n in range(90)) + "---\nbody"
    assert split_front_matter(many).properties == {}
    assert split_front_matter(many).body == many
