"""Read what a memory contains about a person under all names, and merge two names.

Run it: python examples/entities.py
"""

from zettel import Memory

DIARY = [
    ("2024-01-03", "My wife Ana starts at the Porto clinic on Monday."),
    ("2024-01-09", "We had dinner with Ann Berg. Ann wants to move to Oslo."),
    ("2024-02-01", "Ann lives in Oslo now."),
    ("2024-04-01", "Ann moved to Bergen last week."),
]


def main() -> None:
    with Memory(":memory:") as memory:
        for day, text in DIARY:
            memory.add(text, role="user", occurred_at=day, session=day)
        memory.flush()
        for entity in memory.entities(kind="person").entities:
            print(entity.name, entity.aliases, entity.notes)

        ann = memory.entity("Ann Berg")
        for fact in ann.facts:
            print(f"  {fact.attribute}: {fact.value}", "" if fact.current else "(former)")

        decision = memory.merge_entities("Ann", "Annie", reason="her nickname")
        print(memory.entity("Annie").aliases)
        memory.revert(decision.id, 1)
        print(memory.entity("Ann").aliases)


if __name__ == "__main__":
    main()
