"""Annotate and link the notes of a chat with a language model.

OpenAI:    export OPENAI_API_KEY=...
           python examples/with_a_model.py
Anthropic: export ANTHROPIC_API_KEY=...
           python examples/with_a_model.py anthropic/claude-haiku-4-5
Ollama:    ollama pull llama3.2, and OLLAMA_CONTEXT_LENGTH=8192 ollama serve
           python examples/with_a_model.py ollama_chat/llama3.2
           (export OLLAMA_API_BASE=http://... if it runs on another machine)
Any other: its LiteLLM name.
Costs:     two calls of about 1,800 tokens each. The last message is filler and is not sent.
"""

import sys

from zettel import Budget, Event, Memory, ZettelError

MODEL = sys.argv[1] if len(sys.argv) > 1 else "openai/gpt-4o-mini"
CHAT = [
    Event(
        speaker="Ada",
        session="chat",
        occurred_at="2024-03-01T18:00Z",
        content="The neck of my cello cracked tonight.",
    ),
    Event(speaker="Bo", session="chat", occurred_at="2024-03-01T18:01Z", content="Oh no! Who could mend it?"),
    Event(
        speaker="Ada",
        session="chat",
        occurred_at="2024-03-01T18:02Z",
        content="Giulia did, I got it back yesterday.",
    ),
    Event(speaker="Bo", session="chat", occurred_at="2024-03-01T18:03Z", content="Great, thanks!"),
]
QUESTION = "Who repaired Ada's instrument?"


def show(memory: Memory) -> None:
    """Add the chat; print its annotated notes, an answer and the cost."""
    memory.add_many(CHAT)  # durable and searchable at once; the model annotates it in the background
    try:
        memory.flush()
    except ZettelError as error:  # no key, no answer or no budget: the events are stored, and jobs can be retried
        print(f"Some notes are not annotated: {error}")

    for note in memory.list().notes:
        written = "by the model" if "context" in note.authored else "without it"
        print(f"{note.kind.value}, {written}: {note.context or note.content}")

    (hit,) = memory.search(QUESTION, k=1)
    print(f"\n{QUESTION}\n  {hit.note.content}")
    use = memory.stats()
    print(f"\n{use['llm']} answered {use.get('llm_calls', 0)} times: {use.get('llm_tokens', 0):,} tokens")


def main() -> None:
    with Memory(":memory:", llm=MODEL, budget=Budget(calls=20)) as memory:  # a file name makes it durable
        show(memory)


if __name__ == "__main__":
    main()
