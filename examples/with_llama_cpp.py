"""Have a model in a llama.cpp server, on your own machine, write the notes of a chat.

First:  llama-server -m MODEL.gguf -c 4096, or any server that speaks OpenAI's protocol
Run it: python examples/with_llama_cpp.py
Costs:  nothing but time. export LLAMA_CPP_URL=http://.../v1 if it is not at the usual address.

The smallest models lose their way in long questions: here each message is a short one of its own.
"""

import os

from zettel import Event, LiteLLM, LiteLLMAnnotator, Memory, ZettelError

SERVER = os.environ.get("LLAMA_CPP_URL", "http://127.0.0.1:8080/v1")
MODEL = LiteLLM("openai/local", api_base=SERVER, timeout=300, concurrency=1)
ANNOTATOR = LiteLLMAnnotator("lean", batch=1, text_tokens=400)
CHAT = [
    Event(role="Ada", session="chat", occurred_at="2024-03-01T18:00Z", content="The neck of my cello cracked tonight."),
    Event(role="Bo", session="chat", occurred_at="2024-03-01T18:01Z", content="Oh no! Who could mend it?"),
    Event(role="Ada", session="chat", occurred_at="2024-03-01T18:02Z", content="Giulia did, I got it back yesterday."),
    Event(role="Bo", session="chat", occurred_at="2024-03-01T18:03Z", content="Great, thanks!"),
]
QUESTION = "Who repaired Ada's instrument?"


def main() -> None:
    with Memory(":memory:", llm=MODEL, annotator=ANNOTATOR) as memory:  # a file name keeps it
        memory.add_many(CHAT)  # stored and found at once; the model reads it in the background
        try:
            memory.flush()
        except ZettelError as error:  # no key, no answer, no budget left: nothing is lost, and it can go on later
            print(f"Not all was read: {error}")

        for note in memory.list().notes:
            written = "by the model" if "context" in note.authored else "without it"
            print(f"{note.kind.value}, {written}: {note.context or note.content}")

        (hit,) = memory.search(QUESTION, k=1)
        print(f"\n{QUESTION}\n  {hit.note.content}")
        use = memory.stats()
        print(f"\n{use['llm']} was asked {use.get('llm_calls', 0)} times: {use.get('llm_tokens', 0):,} tokens")


if __name__ == "__main__":
    main()
