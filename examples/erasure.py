"""Delete a person's notes and everything derived from them on request, so that later imports skip them.

Run it: python examples/erasure.py
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from zettel import Memory

CHAT = [
    {"id": "1", "speaker": "Ann", "content": "My passport number is K7731099.", "session": "trip"},
    {"id": "2", "speaker": "Ben", "content": "The ferry leaves at seven.", "session": "trip"},
    {"id": "3", "speaker": "Ann", "content": "I take the ferry, too.", "session": "trip"},
]


def erase(memory: Memory, speaker: str) -> int:
    """Delete all events of a speaker, archived ones too, and return their number."""
    deleted = 0
    for archived in (False, True):
        while notes := memory.list(speaker=speaker, archived=archived, limit=1).notes:
            deleted += memory.delete(notes[0].id)
    return deleted


def main() -> None:
    with TemporaryDirectory() as folder:
        store = Path(folder) / "trip.db"
        with Memory(store) as memory:
            memory.add_many(CHAT, wait=True)
            memory.evolve()  # a summary of the session quotes Ann
            print(erase(memory, "Ann"), "notes deleted; left:", [note.content for note in memory.list().notes])
            statuses = [report.status for report in memory.add_many_report(CHAT)]
            print("imported again:", statuses)
            memory.flush()  # waits until the file is purged
        left = b"".join(path.read_bytes() for path in Path(folder).iterdir())
        print("Ann's passport in the file:", b"K7731099" in left)


if __name__ == "__main__":
    main()
