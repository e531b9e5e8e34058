"""Import a chat, search it, explain an answer and delete the chat.

Run it: python examples/import_a_chat.py
"""

from zettel import Event, Memory

CHAT = [
    Event(speaker="Ada", occurred_at="2024-03-01T18:00Z", content="The neck of my cello cracked during the concert."),
    Event(speaker="Bo", occurred_at="2024-03-01T18:01Z", content="Oh no! Who could mend it?"),
    Event(speaker="Ada", occurred_at="2024-03-01T18:02Z", content="I brought it to Giulia Fontana this morning."),
    Event(speaker="Bo", occurred_at="2024-03-09T09:00Z", content="My brother passed his driving test."),
]
QUESTION = "Where is Ada's cello?"


def main() -> None:
    with Memory(":memory:") as memory:  # a file name makes it durable, for other processes too
        memory.add_many([event.model_copy(update={"session": "chat"}) for event in CHAT])
        memory.add("A luthier in Cremona; her workshop smells of spruce.", title="Giulia Fontana", wait=True)

        print(QUESTION)
        for hit in memory.search(QUESTION, explain=True):
            print(f"  {hit.score:.2f}  {hit.note.content}")
            if hit.why.path:
                print("        because of:", " → ".join(step.name for step in hit.why.path))

        print("\nThe same for a prompt:\n")
        print(memory.context(QUESTION, max_tokens=200))

        memory.delete(session="chat")
        left = memory.search("cello", session="chat")
        print(f"\n{'Nothing is left' if not left else 'Something is left'} of the chat.")


if __name__ == "__main__":
    main()
