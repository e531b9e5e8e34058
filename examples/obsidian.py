"""Import an Obsidian vault, ask it, export it, and import an edit as a revision.

Run it: python examples/obsidian.py
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from zettel import Memory

NOTES = {
    "Glazes.md": "---\ncreated: 2024-03-01\ntags: [pottery]\n---\nShino needs a slow start; see [[Kiln log]].",
    "Kiln log.md": "---\ncreated: 2024-03-04\n---\nOstara took nine hours to reach its heat. The door leaks.",
}


def main() -> None:
    with TemporaryDirectory() as folder:
        vault, exported = Path(folder) / "vault", Path(folder) / "exported"
        vault.mkdir()
        (vault / ".obsidian").mkdir()
        for name, text in NOTES.items():
            (vault / name).write_text(text)

        with Memory(Path(folder) / "brain.db") as memory:
            print(memory.import_transcript(vault, "markdown").added, "notes imported")
            memory.flush()
            hit = memory.search("How long does the kiln take?", k=1)[0]
            print(f"{hit.note.title}: {hit.note.content}")
            print("links:", [link.type.value for link in memory.links(hit.note.id)])

            memory.export(exported, "markdown")
            log = exported / "Kiln log.md"
            log.write_text(log.read_text().replace("The door leaks", "The new door is tight"))
            print(memory.import_transcript(exported, edits=True).revised, "note revised")
            for version in memory.history(hit.note.id):
                print(f"  {version.version} {version.cause.by}")


if __name__ == "__main__":
    main()
