"""Chat in the browser with a memory for each user, and inspect the memory, in one small app.

pip install "zettel-graph[server]"
python examples/chat_app.py

Then open http://127.0.0.1:8000/chat to talk, and http://127.0.0.1:8000/ to look at the memory. An argument names
another port.

Without a model, the app answers with the message that fits best. With OPENAI_API_KEY (pip install openai), a model
answers, and the memory is in its prompt. The app has no login: it serves this machine only.
"""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from zettel import AsyncMemory, Scope, wrap
from zettel.server.app import application

PAGE = """<!doctype html><title>Chat with a memory</title><h1>Chat with a memory</h1>
<form>User <input name="user" value="ann"> Message <input name="text" autofocus size="60"> <button>Send</button></form>
<ol></ol><p><a href="/">The memory of all users</a></p>
<script>
  const show = (text) => {
    const line = Object.assign(document.createElement("li"), {textContent: text});
    document.querySelector("ol").append(line);
    return line;
  };
  document.querySelector("form").onsubmit = async (event) => {
    event.preventDefault();
    const sent = Object.fromEntries(new FormData(event.target));
    event.target.text.value = "";
    show(`${sent.user}: ${sent.text}`);
    const line = show("bot: …");
    const answer = await fetch("/chat", {method: "POST", headers: {"content-type": "application/json"},
                                         body: JSON.stringify(sent)});
    line.textContent = answer.ok ? `bot: ${(await answer.json()).text}` : `error ${answer.status}`;
  };
</script>"""


class Message(BaseModel):
    user: str
    text: str


def chat_app(store: str | Path = "chat.db") -> FastAPI:
    @asynccontextmanager
    async def opened(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncMemory(store) as memory:
            app.state.memory = memory
            app.mount("/", application(memory))  # all paths but /chat: those of `zettel serve`
            yield

    app = FastAPI(lifespan=opened)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])

    @app.get("/chat", response_class=HTMLResponse)
    async def page() -> str:
        return PAGE

    @app.post("/chat")
    async def chat(message: Message) -> dict[str, str]:
        answer = by_model if "OPENAI_API_KEY" in os.environ else from_memory
        return {"text": await answer(app.state.memory, message, Scope(user=message.user))}

    return app


async def from_memory(memory: AsyncMemory, message: Message, scope: Scope) -> str:
    """Store the message, and answer with an earlier one."""
    hits = await memory.search(message.text, k=1, min_score=0.3, scope=scope)
    await memory.add(message.text, role="user", session="chat", scope=scope)
    return f"You wrote: {hits[0].note.content}" if hits else "Noted."


async def by_model(memory: AsyncMemory, message: Message, scope: Scope) -> str:
    """Let a model answer; the wrapped client recalls before it, and stores both messages."""
    from openai import AsyncOpenAI

    messages = [{"role": "user", "content": message.text}]
    async with AsyncOpenAI() as openai:
        client = wrap(memory, openai, scope=scope, session="chat")
        completion = await client.chat.completions.create(model="gpt-4o-mini", messages=messages)
    return completion.choices[0].message.content


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    uvicorn.run(chat_app(), host="127.0.0.1", port=port, log_level="warning")
