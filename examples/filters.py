"""Filter by metadata, and count and group events exactly.

Run it: python examples/filters.py
"""

from zettel import Memory

BOATS = [
    {"content": "The Heron is a rowing boat.", "metadata": {"price": 400, "colours": ["red", "white"]}},
    {"content": "The Gull is a dinghy.", "metadata": {"price": 900, "colours": ["blue"], "sold": True}},
    {"content": "The Tern is a cutter.", "metadata": {"price": 2400, "colours": ["white"]}},
]


def main() -> None:
    with Memory(":memory:") as memory:
        memory.add_many(BOATS)
        for filter in (
            {"price": {"lt": 1000}, "sold": {"ne": True}},
            {"colours": {"contains": "white"}},
            {"or": [{"sold": True}, {"price": {"gte": 2000}}]},
        ):
            print(filter, sorted(hit.note.content for hit in memory.search("Which boat?", filter=filter)))

        for day in ("2024-05-01", "2024-05-20", "2024-06-02"):
            memory.add("Went running along the pier.", speaker="Ann", occurred_at=day)
        runs = memory.query("events", words=["run"], speaker="Ann", group_by=["month"])
        print("runs:", runs.count, {group.key["month"]: group.count for group in runs.groups})


if __name__ == "__main__":
    main()
