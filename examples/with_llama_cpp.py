"""Annotate the notes of a chat with a model in a llama.cpp server on your own machine.

First:  llama-server -m MODEL.gguf -c 4096, or any server with OpenAI's protocol
Run it: python examples/with_llama_cpp.py
Costs:  only time. export LLAMA_CPP_URL=http://.../v1 if it is not at the default address.

The smallest models fail on long prompts, so each prompt contains only one message.
"""

import os

from with_a_model import show

from zettel import LiteLLM, LiteLLMAnnotator, Memory

SERVER = os.environ.get("LLAMA_CPP_URL", "http://127.0.0.1:8080/v1")
MODEL = LiteLLM("openai/local", api_base=SERVER, timeout=300, concurrency=1)
ANNOTATOR = LiteLLMAnnotator("lean", batch=1, text_tokens=400)


def main() -> None:
    with Memory(":memory:", llm=MODEL, annotator=ANNOTATOR) as memory:  # a file name makes it durable
        show(memory)


if __name__ == "__main__":
    main()
