"""This version opens the stores of all released versions.

Each release adds a store file: `python tests/integration/test_released_stores.py VERSION` writes it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from zettel import Event, Memory, Scope

STORES = Path(__file__).parents[1] / "data" / "stores"
OTHER = Scope(tenant="acme", user="bob")


def fill(path: Path) -> None:
    """Write a small memory with every kind of data that a store can contain."""
    with Memory(path) as memory:
        memory.add_many(
            [
                Event(id="1", content="I live in Bergen.", speaker="Ann", session="a", occurred_at="2024-01-10T09:00Z"),
                Event(id="2", content="Kestrel, my dog, howls at the moon.", speaker="Ann", session="a"),
                Event(id="3", content="Kestrel, my dog, howled at the moon again.", speaker="Ann", session="b",
                      occurred_at="2024-02-01", payload={"pi": 3.5, "deep": [1, {"ä": None}]},
                      metadata={"mood": "fine"}),
                Event(id="4", title="The Glass Orchard", content="A film of 1931.", source="films.txt"),
                Event(id="5", content="Have you seen The Glass Orchard?", speaker="Bob"),
                Event(id="6", content=" ".join(f"Sentence {n} of a long report." for n in range(120))),
                Event(id="7", content="To be deleted."),
            ]
        )  # fmt: skip
        memory.add("Bob keeps bees.", scope=OTHER)
        ids = {record.external_id: notes[0].id for record, notes in memory.dump()}
        memory.update(ids["1"], content="I live in Oslo.", keywords=["home"])
        memory.update(ids["2"], importance=0.9)
        memory.revert(ids["2"], 1)
        memory.add("A film of 1932.", id="4", title="The Glass Orchard", source="films.txt", on_conflict="revise")
        memory.delete(ids["7"])
        memory.flush()


@pytest.mark.parametrize("path", sorted(STORES.glob("*.db")), ids=lambda path: path.stem)
def test_a_released_store_opens_with_its_contents(path: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(path, tmp_path / path.name))
    with Memory(copy) as memory:
        assert memory.check() == []
        assert set(memory.scopes()) == {Scope(), OTHER}
        ids = {record.external_id: notes[0].id for record, notes in memory.dump() if notes}
        home = memory.get(ids["1"])
        assert (home.content, home.keywords, home.authored) == ("I live in Oslo.", ("home",), ("keywords",))
        assert memory.revert(ids["1"], 1).content == "I live in Bergen."
        assert [revision.cause.by for revision in memory.history(ids["2"]) if revision.undoes] == ["user"]
        assert {record.speaker for record, _ in memory.dump()} == {None, "Ann", "Bob"}
        assert {note.role for note in memory.list().notes} == {None}
        assert [note.content for note in memory.list(speaker="Bob").notes] == ["Have you seen The Glass Orchard?"]
        event = next(record for record, _ in memory.dump() if record.external_id == "3")
        assert (event.payload, event.metadata) == ({"pi": 3.5, "deep": [1, {"ä": None}]}, {"mood": "fine"})
        assert memory.search("What does Kestrel do?")[0].note.id in (ids["2"], ids["3"])
        assert {link.type.value for link in memory.links(ids["5"])} == {"MENTIONS"}
        assert {link.type.value for link in memory.links(ids["3"])} == {"RELATES"}
        assert memory.get(ids["4"]).content == "A film of 1932."
        assert memory.get(ids["6"]).parts > 2
        (deleted,) = memory.add_many_report([Event(id="7", content="To be deleted.")])
        assert deleted.status == "deleted"
        memory.add("And it can be written to.")
        memory.flush()
        assert memory.check() == []


def test_at_least_one_released_store_is_tested() -> None:
    assert list(STORES.glob("*.db"))


if __name__ == "__main__":
    fill(STORES / f"{sys.argv[1]}.db")
