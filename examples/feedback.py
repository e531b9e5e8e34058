"""Report which notes an answer used, and see which notes of a memory are used.

Run it: python examples/feedback.py
"""

from zettel import Memory


def main() -> None:
    with Memory(":memory:") as memory:
        memory.add("The harbour office opens at eight.")
        memory.add("The harbour master is called Ida.")
        memory.add("The harbour café sells waffles.", wait=True)

        hits = memory.search("When does the harbour office open?")
        memory.feedback(hits[0].search_id, answer="It opens at eight.", outcome="success")
        logged = memory.searches()[-1]
        print("used:", [memory.get(id).content for id in logged.used])

        hits = memory.search("Who is the harbour master?")
        memory.feedback(hits[0].search_id, used=[hits[0].note.id])
        usage = memory.usage()
        print("searches:", usage.searches, "with a report:", usage.reported)
        print("most used:", sorted(memory.get(used.note).content for used in usage.most_used))


if __name__ == "__main__":
    main()
