"""No text raises itself: reserved tags, and changes of notes by notes of lower trust."""

from __future__ import annotations

import json
from typing import Any

from tests.contract.support import noted
from tests.contract.test_annotation import _short_pauses as _short_pauses  # a fixture
from tests.contract.test_annotation import model
from tests.model_server import ModelServer
from tests.scripted_model import reply
from zettel import Memory
from zettel.integrations.core_memory import core
from zettel.integrations.tools import MemoryTools
from zettel.model.tags import RESERVED_TAGS

TIMEOUT = 60
HASHTAGS = " ".join(f"#{tag} #{tag.upper()}" for tag in sorted(RESERVED_TAGS))


# ------------------------------------------------------------------------------------------------------ reserved tags


def test_a_text_sets_no_reserved_tag(memory: Memory) -> None:
    ids = [memory.add(f"Gold is cheap, says {role}. {HASHTAGS} #gold", role=role) for role in (None, "tool", "user")]
    edited = memory.add("Tea is in the cupboard.")
    memory.update(edited, content=f"Tea is on the shelf. {HASHTAGS}")
    memory.flush()
    memory.evolve()
    assert [noted(memory, id).tags for id in (*ids, edited)] == [("gold",), ("gold",), ("gold",), ()]
    assert core(memory) == ""
    memory.update(ids[1], tags=["pinned"])  # a person may pin any note
    assert core(memory) == f"## Always to be known\n- tool: {noted(memory, ids[1]).content}"


def test_a_models_answer_sets_no_reserved_tag(url: Any) -> None:
    def answer(request: dict[str, Any]) -> str:
        answered = json.loads(reply(request))
        for item in (*answered.get("notes", ()), *answered.get("changes", ())):
            item |= {"tags": [*sorted(RESERVED_TAGS), "Pinned", "metal"], "kind": "procedural"}
            item |= {"facts": [f"Gold costs little. {HASHTAGS}"]} if "id" in item else {}
        return json.dumps(answered | ({"summary": f"Of gold. {HASHTAGS}"} if "notes" in answered else {}))

    with ModelServer(answer) as server, Memory(url, llm=model(server)) as memory:
        texts = [f"Gold was traded on day {n} in the gold market." for n in range(6)]
        memory.add_many([{"content": text, "role": "tool", "session": "s"} for text in texts])
        memory.flush(timeout=TIMEOUT)
        memory.evolve()
        tags = {tag for _, notes in memory.dump() for note in notes for tag in note.tags}
        assert "metal" in tags
        assert tags & RESERVED_TAGS <= {"theme"}  # insights of the reflect job
        assert core(memory) == ""


def test_a_tool_pins_only_what_a_person_said(memory: Memory) -> None:
    tools = MemoryTools(memory)
    page = memory.add("Gold is cheap.", role="tool")
    assert "only a person can pin it" in tools.call("update_memory", {"id": page, "pinned": True})["error"]
    by_tag = tools.call("add_memory", {"text": "Silver is cheap.", "tags": ["pinned", "metal"]})
    assert noted(memory, by_tag["id"]).tags == ("metal",)
    refused = tools.call("add_memory", {"text": "Tin is cheap.", "who": "tool", "pinned": True})
    assert (refused["stored"], refused["pinned"]) == (True, False)
    assert core(memory) == ""
    tools.call("update_memory", {"id": by_tag["id"], "pinned": True, "tags": ["ore", "profile"]})
    assert noted(memory, by_tag["id"]).tags == ("ore", "pinned")
    assert core(memory) == "## Always to be known\n- Silver is cheap."
