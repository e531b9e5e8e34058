"""Importing an edited vault revises the notes of the memory that exported it."""

from __future__ import annotations

from pathlib import Path

import pytest

from zettel import Memory, Note
from zettel.transcripts.report import ImportReport

REPORT = " ".join(f"Sentence {number} of a report." for number in range(90))




@pytest.fixture
def sails(memory: Memory, tmp_path: Path) -> Note:
    """Return a note with a file in a vault, Sails.md, next to others."""
    id = memory.add("The sails are at the loft. #gear", title="Sails", metadata={"shelf": 3})
    memory.add("The barn is dry. Ben looked after the Sails.", title="Barn")
    memory.add(REPORT, title="Report")
    memory.update(id, tags=["gear", "sail & rope"])
    memory.flush()
    memory.export(tmp_path / "vault", "markdown")
    return memory.get(id)


def edit(vault: Path, *changes: tuple[str, str], name: str = "Sails") -> None:
    path = vault / f"{name}.md"
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text)


def counted(report: ImportReport) -> dict[str, int]:
    names = ("added", "existing", "revised", "deleted", "rejected")
    return {name: getattr(report, name) for name in names if getattr(report, name)}


def test_each_edit_is_one_revision(memory: Memory, sails: Note, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    edit(
        vault,
        ("- gear\n", "- gear\n- winter\n"),
        ("importance: 0.5", "importance: 0.9"),
        ("version:", "mood: calm\nversion:"),
        ("\nThe sails are at the loft.", "\nThe sails are in the attic of the [[Barn]]."),
    )
    assert counted(memory.import_transcript(vault, edits=True, dry_run=True)) == {"revised": 1, "existing": 3}
    assert memory.get(sails.id) == sails
    assert counted(memory.import_transcript(vault, edits=True)) == {"revised": 1, "existing": 3}
    memory.flush()
    edited = memory.get(sails.id)
    assert edited.content == "The sails are in the attic of the [[Barn]]. #gear"
    assert edited.tags == ("gear", "winter", "sail & rope")
    assert (edited.importance, edited.metadata, edited.title) == (0.9, {"shelf": 3, "mood": "calm"}, "Sails")
    assert "Barn" in {memory.get(link.target).title for link in memory.links(edited.id) if link.source == edited.id}
    assert memory.search("What is in the attic?", k=1)[0].note.id == edited.id
    assert "edit" in {revision.cause.by for revision in memory.history(edited.id)}
    assert "user" not in {revision.cause.by for revision in memory.history(edited.id) if "content" in revision.change}
    for _ in range(2):
        assert counted(memory.import_transcript(vault, edits=True)) == {"existing": 4}
        memory.revert(edited.id, sails.version)  # a reverted edit is not imported again
    assert memory.get(edited.id).content == sails.content


def test_without_the_option_no_file_changes_its_note(memory: Memory, sails: Note, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    edit(vault, ("- gear\n", "- gear\n- pinned\n"), ("at the loft. #gear\n", "in the barn. #gear\n"))
    (barn,) = (note for note in memory.list().notes if note.title == "Barn")
    edit(vault, (f"version: {barn.version}\n", ""), ("The barn is dry.", "The barn is wet."), name="Barn")
    for dry_run in (True, False):
        report = memory.import_transcript(vault, dry_run=dry_run)
        assert (counted(report), report.unapplied_edits) == ({"existing": 4}, 2)
    assert memory.get(sails.id) == sails
    report = memory.import_transcript(vault, edits=True)
    assert (counted(report), report.unapplied_edits) == ({"revised": 1, "existing": 3}, 1)
    assert memory.get(sails.id).tags == ("gear", "pinned", "sail & rope")


def test_an_old_file_reverts_no_newer_changes(memory: Memory, sails: Note, tmp_path: Path) -> None:
    memory.update(sails.id, content="The sails are sold.", keywords=["sale"])
    edit(tmp_path / "vault", ("importance: 0.5", "importance: 0.7"))
    assert counted(memory.import_transcript(tmp_path / "vault", edits=True)) == {"revised": 1, "existing": 3}
    edited = memory.get(sails.id)
    assert (edited.content, edited.keywords, edited.importance) == ("The sails are sold.", ("sale",), 0.7)


def test_deleted_notes_stay_deleted(memory: Memory, sails: Note, tmp_path: Path) -> None:
    memory.delete(sails.id)
    assert counted(memory.import_transcript(tmp_path / "vault", edits=True)) == {"deleted": 1, "existing": 3}
    assert memory.stats()["notes"] == 3


def test_invalid_values_are_rejected(memory: Memory, sails: Note, tmp_path: Path) -> None:
    edit(tmp_path / "vault", ("importance: 0.5", "importance: huge"))
    report = memory.import_transcript(tmp_path / "vault", edits=True)
    assert counted(report) == {"rejected": 1, "existing": 3}
    assert "Sails.md" in report.rejected_records[0].file
    assert "importance" in report.rejected_records[0].reason
    assert memory.get(sails.id) == sails


def test_another_memory_imports_files_as_events(memory: Memory, sails: Note, tmp_path: Path) -> None:
    with Memory(tmp_path / "other.db") as other:
        assert counted(other.import_transcript(tmp_path / "vault")) == {"added": 4}
        edit(tmp_path / "vault", ("at the loft. #gear\n", "in the barn. #gear\n"))
        assert counted(other.import_transcript(tmp_path / "vault")) == {"revised": 1, "existing": 3}


def test_an_export_rewrites_files_after_their_import(memory: Memory, sails: Note, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    edit(vault, ("at the loft. #gear\n", "in the barn. #gear\n"))
    edit(vault, ("The barn is dry.", "The barn is wet."), name="Barn")
    edit(vault, ("%%\n", "%%\nMy own words.\n"))
    assert memory.export(vault, "markdown").edited == ["Sails.md", "Barn.md"]  # not imported yet
    assert counted(memory.import_transcript(vault, edits=True)) == {"revised": 2, "existing": 2}
    memory.flush()
    assert memory.export(vault, "markdown").edited == ["Sails.md"]  # it contains text of its own
    assert "version: 1" not in (vault / "Barn.md").read_text()
    edit(vault, ("My own words.\n", ""))
    assert memory.export(vault, "markdown").edited == []
    assert counted(memory.import_transcript(vault, edits=True)) == {"existing": 4}
    assert memory.export(vault, "markdown").changed == 0
