"""Wrap a client, so that a conversation recalls messages of earlier ones.

Any client of the OpenAI protocol works; this one is OpenAI's own (pip install openai).

export OPENAI_API_KEY=...
python examples/wrap_a_client.py

OPENAI_BASE_URL names another server, and the first argument another model than gpt-4o-mini.
"""

import sys

from openai import OpenAI

from zettel import Memory, wrap

MODEL = sys.argv[1] if len(sys.argv) > 1 else "gpt-4o-mini"


def conversation(client: OpenAI, question: str) -> None:
    """Run one turn of a new conversation; the program stores no earlier ones."""
    print(f"Ann: {question}\n  ", end="")
    messages = [{"role": "user", "content": question}]
    for chunk in client.chat.completions.create(model=MODEL, messages=messages, stream=True):
        print(chunk.choices[0].delta.content or "", end="")
    print()


with Memory(":memory:") as memory, OpenAI() as client:
    for question in ["I moved my boat, the Blue Heron, to the harbour of Risør.", "I have sold my bicycle.",
                  "Where is my boat?"]:  # fmt: skip
        conversation(wrap(memory, client, user="Ann"), question)
    print("\nremembered:")
    for note in memory.list().notes:
        print(f"  {note.speaker}: {note.content}")
