"""Search by valid time (``as_of``) and transaction time (``known_at``).

Run it: python examples/bitemporal_search.py
"""

from datetime import datetime, timezone

from zettel import Memory

QUESTION = "Where does Ann live?"


def main() -> None:
    with Memory(":memory:") as memory:
        memory.add("I live in Bergen, above a bakery.", speaker="Ann", occurred_at="2024-01-10T09:00Z")
        memory.add("I live in Oslo now, by the harbour.", speaker="Ann", occurred_at="2024-05-01T18:00Z")
        in_between = datetime.now(timezone.utc)
        # An old letter reports it later: it happened in February and is recorded now.
        memory.add("I live in Bergen, but no longer above the bakery.", speaker="Ann", occurred_at="2024-02-20T12:00Z")

        show(memory, "all we know")
        show(memory, "true in March", as_of="2024-03-01")
        show(memory, "true in March, known in between", as_of="2024-03-01", known_at=in_between)


def show(memory: Memory, title: str, *, as_of: str | None = None, known_at: datetime | None = None) -> None:
    print(f"{title}:")
    for hit in memory.search(QUESTION, as_of=as_of, known_at=known_at):
        day = hit.note.occurred_at.date() if hit.note.occurred_at else "undated"
        print(f"  {day}  {hit.note.content}")


if __name__ == "__main__":
    main()
