"""Merge duplicates, spread keywords and derive a profile by rules, and revert each change.

Run it: python examples/evolution.py
"""

from zettel import Memory

DIARY = [
    ("2025-03-04T19:10Z", "Mira", "Ostara took nine hours to reach its heat. Its door leaks."),
    ("2025-03-04T19:12Z", "Jonas", "I mended the door of Ostara with wire and clay."),
    ("2025-03-04T19:12:30Z", "Jonas", "I mended the door of Ostara with wire and clay."),
    ("2025-03-20T08:00Z", "Mira", "Please always answer in metric units."),
    ("2025-04-11T19:00Z", "Mira", "The door leaked again, and again wire and clay helped."),
]


def main() -> None:
    with Memory(":memory:") as memory:
        for time, speaker, text in DIARY:
            last = memory.add(text, speaker=speaker, occurred_at=time, session=time[:10])
        memory.flush()
        print("before:", ", ".join(memory.get(last).keywords))
        report = memory.evolve()
        print("merged:", report.merged, "revised:", report.revised, "insights:", report.insights)
        print("after:", ", ".join(memory.get(last).keywords))
        print(memory.context("Which glaze does Mira use?", profile=True).splitlines()[:2])

        version = memory.history(last)[-1]
        print(f"version {version.version} by {version.cause.by}; reverted:", end=" ")
        print(", ".join(memory.revert(last, version.version - 1).keywords))


if __name__ == "__main__":
    main()
