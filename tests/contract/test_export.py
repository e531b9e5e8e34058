"""Exports: files and folders contain the whole memory, and an import reads them again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx
import pytest

from tests.contract.conftest import BACKENDS, EVERY_STORE
from tests.contract.support import LIFE, decide
from zettel import LinkType, Memory, Note, Scope
from zettel.errors import InvalidInput

ODD = 'What [[#is]] "this"? ^a|b\\c/d:e*<f>'
"""A title of characters that mean something to a file system or a link."""

EVENTS: list[dict[str, Any]] = [
    *LIFE,
    {"id": "20", "content": "A film of 1931.", "title": "The Glass Orchard", "source": "films.txt:3"},
    {"id": "21", "content": "Have you seen The Glass Orchard? #film", "speaker": "Bob",
     "metadata": {"mood": ["fine", 1]}},
    {
        "id": "22",
        "content": " \r\nblanks and\x07 bells\n\n",
        "title": ODD,
        "session": "c/d",
        "occurred_at": "1931-01-01",
    },
    {"content": "Nobody knows when, and it has no key."},
    {"content": "Nobody knows when, and it has no key.", "payload": {"broken": "\ud83d", "big": 10**40}},
    {"content": "Twice.", "occurred_at": "2024-01-01"},
    {"content": "Twice.", "occurred_at": "2024-01-01"},
    {"id": "23", "content": " ".join(f"Sentence {number} of a report." for number in range(90)), "title": "Report"},
]


@pytest.fixture(scope="module", params=EVERY_STORE)
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A memory on each store with revised events, links and edited notes."""
    with Memory(BACKENDS[request.param](tmp_path_factory.mktemp("filled"))) as memory:
        _fill(memory)
        yield memory


def _fill(memory: Memory) -> None:
    memory.add_many(EVENTS)
    memory.add("A film of 1932.", id="20", title="The Glass Orchard", source="films.txt", on_conflict="revise")
    memory.add("One more.", id="30")
    memory.add("A film of 1931.", id="20", title="The Glass Orchard", source="films.txt", on_conflict="revise")
    memory.flush()
    ids = {event.external_id: notes[0].id for event, notes in memory.dump() if notes}
    memory.update(ids["2"], tags=["strings & bows", "question"], keywords=["cello"])
    decide(memory, ids["4"], ids["1"], LinkType.SUPERSEDES)
    memory.archive(ids["7"])
    memory.flush()


def live(memory: Memory, scope: Scope | None = None) -> list[Note]:
    return list(memory.list(limit=1000, scope=scope).notes)


class TestLines:
    def test_a_round_trip_gives_the_same_bytes(self, filled: Memory, tmp_path: Path) -> None:
        first, second = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
        report = filled.export(first)
        assert report.events == filled.stats(scope=Scope())["events"] == len(first.read_bytes().splitlines())
        with Memory(tmp_path / "copy.db") as copy:
            assert copy.import_transcript(first, "jsonl").rejected_records == []
            copy.flush()
            copy.export(second)
            assert second.read_bytes() == first.read_bytes()
            assert copy.import_transcript(first, "jsonl").added == 0


class TestVault:
    @pytest.fixture
    def vault(self, filled: Memory, tmp_path: Path) -> Path:
        report = filled.export(tmp_path / "vault", "markdown")
        assert report.notes == len(live(filled))
        return tmp_path / "vault"

    def test_a_reimport_adds_nothing(self, filled: Memory, vault: Path) -> None:
        before = {note.id: note.version for note in live(filled)}
        report = filled.import_transcript(vault)
        assert (report.added, report.revised, report.existing, report.rejected) == (0, 0, len(before), 0)
        assert {note.id: note.version for note in live(filled)} == before

    def test_every_link_leads_to_a_file(self, filled: Memory, vault: Path) -> None:
        files = {path.relative_to(vault).with_suffix("").as_posix() for path in vault.rglob("*.md")}
        links = 0
        for path in vault.rglob("*.md"):
            text = path.read_bytes().decode().rpartition("%% zettel: below")[2]  # texts are verbatim
            for link in re.findall(r"\[\[(.*?)\]\]", text):
                assert link.partition("|")[0] in files
                links += 1
        shown = {note.id for note in live(filled)}
        typed = {link for id in shown for link in filled.links(id) if {link.source, link.target} <= shown}
        assert links > len(typed) > 3

    def test_a_vault_round_trip_preserves_events(self, filled: Memory, vault: Path, tmp_path: Path) -> None:
        """Texts, titles, times, speakers, sessions, metadata, order and MENTIONS survive; tags may become text."""
        with Memory(tmp_path / "copy.db") as copy:
            report = copy.import_transcript(vault)
            copy.flush()
            assert (report.format, report.rejected_records) == ("markdown", [])
            ours, theirs = live(filled), [note for note in live(copy) if note.part == 0]
            assert len(ours) == len(theirs)
            for note, other in zip(ours, theirs, strict=True):
                below = other.content.removeprefix(note.content)
                assert below in ("", "\n\n#strings_bows")
                assert other.title == (note.title if note.part == 0 else None)
                for field in ("occurred_at", "speaker", "session", "metadata"):
                    assert getattr(other, field) == getattr(note, field)
                assert set(other.tags) == {tag.replace(" & ", "_") for tag in note.tags}
            assert mentions(copy, {other.id: note.id for note, other in zip(ours, theirs, strict=True)}) == mentions(
                filled, {note.id: note.id for note in ours}
            )
            second_import = copy.import_transcript(vault)
            assert (second_import.added, second_import.revised) == (0, 0)

    def test_a_second_export_follows_the_memory(self, filled: Memory, tmp_path: Path) -> None:
        vault, scope = tmp_path / "vault", Scope(user="follower")
        filled.add_many([{"content": f"Boat {name} left.", "session": "s"} for name in "ABC"], scope=scope)
        filled.flush(scope=scope)
        assert filled.export(vault, "markdown", scope=scope).changed == 5
        assert filled.export(vault, "markdown", scope=scope).changed == 0
        deleted, other, _ = live(filled, scope)
        filled.delete(deleted.id, scope=scope)
        filled.update(other.id, title="Another name", scope=scope)
        report = filled.export(vault, "markdown", scope=scope)
        assert (report.notes, report.removed, report.edited) == (2, 2, [])
        assert {path.name for path in vault.glob("*.md")} == {"Another name.md", "Boat C left.md", "Index.md"}
        assert not any(deleted.id in path.read_text() for path in vault.rglob("*.*"))

    def test_an_edited_file_stays_next_to_the_renamed_note(
        self, filled: Memory, tmp_path: Path
    ) -> None:
        vault, scope = tmp_path / "vault", Scope(user="renamer")
        id = filled.add("The sails are at the loft.", title="Sails", scope=scope)
        filled.export(vault, "markdown", scope=scope)
        (vault / "Sails.md").write_text("My own words.")
        filled.update(id, title="Canvas", scope=scope)
        filled.export(vault, "markdown", scope=scope)
        for _ in range(2):
            report = filled.export(vault, "markdown", scope=scope)
            assert (report.changed, report.removed, report.edited) == (0, 0, ["Sails.md"])
            assert {path.name for path in vault.glob("*.md")} == {"Canvas.md", "Index.md", "Sails.md"}

    def test_changed_line_ends_are_not_edits(self, filled: Memory, tmp_path: Path) -> None:
        vault, scope = tmp_path / "vault", Scope(user="windows")
        names = ("Sails", "Boat", "Barn")
        sails, other, _ = [filled.add(f"{name}\nis here.", title=name, scope=scope) for name in names]
        filled.flush(scope=scope)
        filled.export(vault, "markdown", scope=scope)
        for path in vault.glob("*.md"):
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        filled.update(sails, content="The sails are at the loft.", scope=scope)
        filled.delete(other, scope=scope)
        report = filled.export(vault, "markdown", scope=scope)
        assert (report.edited, {path.name for path in vault.glob("*.md")}) == ([], {"Sails.md", "Barn.md", "Index.md"})
        assert "at the loft" in (vault / "Sails.md").read_text()


def mentions(memory: Memory, called: dict[str, str]) -> set[tuple[str, str]]:
    mention_links = {link for id in called for link in memory.links(id) if link.type is LinkType.MENTIONS}
    return {(called[link.source], called[link.target]) for link in mention_links}


class TestGraph:
    def test_networkx_counts_match_the_memory(self, filled: Memory, tmp_path: Path) -> None:
        path = tmp_path / "ann.graphml"
        report = filled.export(path, "graphml")
        shown = {note.id for note in live(filled)}
        graph = networkx.read_graphml(path, force_multigraph=True)
        links = {link for id in shown for link in filled.links(id) if {link.source, link.target} <= shown}
        assert set(graph) == shown
        assert (report.notes, report.links) == (len(graph), graph.number_of_edges()) == (len(shown), len(links))
        edges = {(source, target, data["kind"], data["weight"]) for source, target, data in graph.edges(data=True)}
        assert edges == {(link.source, link.target, link.type.value, link.weight) for link in links}

    def test_terms_and_events_are_exported(self, filled: Memory, tmp_path: Path) -> None:
        path = tmp_path / "ann.graphml"
        report = filled.export(path, "graphml", include=["terms", "events"])
        graph = networkx.read_graphml(path)
        kinds = [attributes["kind"] for _, attributes in graph.nodes(data=True)]
        terms = {term.key for note in live(filled) for term in filled.terms(note.id)}
        assert (kinds.count("term"), kinds.count("event")) == (len(terms), filled.stats(scope=Scope())["events"])
        assert (report.terms, report.events) == (kinds.count("term"), kinds.count("event"))
        edges = [attributes["kind"] for *_, attributes in graph.edges(data=True)]
        assert edges.count("FROM") == sum(len(note.event_ids) for note in live(filled))
        assert edges.count("HAS_TERM") == sum(len(filled.terms(note.id)) for note in live(filled))

    def test_texts_are_complete_except_for_invalid_xml_characters(self, filled: Memory, tmp_path: Path) -> None:
        path = tmp_path / "ann.graphml"
        filled.export(path, "graphml")
        ElementTree.parse(path)
        texts = {id: attributes["text"] for id, attributes in networkx.read_graphml(path).nodes(data=True)}
        assert texts == {note.id: note.content.replace("\x07", "\ufffd") for note in live(filled)}


def test_an_empty_scope_is_exported(filled: Memory, tmp_path: Path) -> None:
    nobody = Scope(user="nobody")
    filled.export(tmp_path / "none.jsonl", scope=nobody)
    filled.export(tmp_path / "none.graphml", "graphml", scope=nobody)
    filled.export(tmp_path / "vault", "markdown", scope=nobody)
    assert (tmp_path / "none.jsonl").read_bytes() == b""
    assert len(networkx.read_graphml(tmp_path / "none.graphml")) == 0
    assert [path.name for path in (tmp_path / "vault").glob("*.md")] == ["Index.md"]


def test_invalid_export_options_raise(filled: Memory, tmp_path: Path) -> None:
    filled.add("Rain fell.", scope=Scope(user="ann"))
    with pytest.raises(InvalidInput, match="graphml cannot contain several scopes"):
        filled.export(tmp_path / "all.graphml", "graphml", all_scopes=True)
    with pytest.raises(InvalidInput, match="jsonl cannot include 'terms': it takes notes"):
        filled.export(tmp_path / "all.jsonl", include=["terms"])
    assert list(tmp_path.glob("all.*")) == []
