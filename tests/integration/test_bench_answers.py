"""``zettel bench answers`` with a scripted model over HTTP: grades, resumption, budgets, files, wrong input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.described import described
from tests.integration.command import Zettel
from tests.model_server import Fault, ModelServer, first
from tests.scripted_model import reply
from zettel.bench.answers import asking, datasets, requests
from zettel.llm.budget import Budget
from zettel.llm.lite import LiteLLM

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CHECKOUT = Path(__file__).parents[2]
TALK = [
    {
        "sample_id": "pond",
        "conversation": {
            "session_1_date_time": "7:05 pm on 3 March, 2024",
            "session_1": [
                {"speaker": "Ann", "text": "The heron came back to the pond this morning.", "dia_id": "D1:1"},
                {"speaker": "Ben", "text": "I mended the oak boat on Friday.", "dia_id": "D1:2"},
            ],
            "session_2_date_time": "9:00 am on 5 April, 2024",
            "session_2": [
                {"speaker": "Ann", "text": "My sister Nell keeps bees behind the abbey.", "dia_id": "D2:1"},
                {"speaker": "Ben", "text": "Basil grows on my sill, and mint beside it.", "dia_id": "D2:2"},
            ],
        },
        "qa": [
            {"question": "Who keeps bees behind the abbey?", "answer": "Nell", "evidence": ["D2:1"], "category": 4},
            {"question": "What did Ben mend on Friday?", "answer": "boat", "evidence": ["D1:2"], "category": 4},
            {"question": "What grows on the sill of Ben?", "answer": "thyme", "evidence": ["D2:2"], "category": 1},
            {"question": "When did Ben sell bees?", "adversarial_answer": "May", "evidence": [], "category": 5},
        ],
    }
]
NAMES = ("--answer-model", "openai/scripted", "--judge-model", "openai/judge", "--embedder", "static")
SIZES = ("--contexts", "zettel,bm25", "--max-tokens", "30")
IDS = ["pond/1", "pond/2", "pond/3"]


@pytest.fixture
def talk(tmp_path: Path) -> str:
    (tmp_path / "talk.json").write_text(json.dumps(TALK))
    return "talk.json"


def column(result: dict[str, Any], name: str) -> dict[str, Any]:
    place = result["columns"].index(name)
    return {row[0]: row[place] for row in result["rows"]}


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def texts(server: ModelServer) -> Counter[str]:
    """Return how often each text was asked."""
    return Counter(request["messages"][-1]["content"] for request in server.requests)


def wait_for_requests(server: ModelServer, count: int, process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until a server was asked ``count`` times, or the process has ended; LiteLLM may take minutes to load."""
    while server.asked < count and (process is None or process.poll() is None):
        time.sleep(0.02)


def test_answers_of_each_system_are_graded_and_never_asked_for_again(
    zettel: Zettel, talk: str, openai: ModelServer, tmp_path: Path
) -> None:
    command = ("bench", "answers", "locomo", talk, *NAMES, "--contexts", "bm25,zettel,full", "--max-tokens", "30")
    window = ("--window", "10000", "--json", "-")
    result = zettel(*command, *window, "--yes").json()
    assert [row[0] for row in result["rows"]] == ["zettel", "bm25", "full", "questions"]
    assert column(result, "score") == {"zettel": 0.6667, "bm25": 0.6667, "full": 0.6667, "questions": 3}
    assert column(result, "single-hop") == {"zettel": 1.0, "bm25": 1.0, "full": 1.0, "questions": 2}
    assert column(result, "multi-hop")["full"] == 0.0
    assert column(result, "low")["zettel"] <= 0.6667 <= column(result, "high")["zettel"]
    assert column(result, "p") == {"zettel": None, "bm25": 1.0, "full": 1.0, "questions": None}
    tokens = column(result, "tokens")
    assert max(tokens["zettel"], tokens["bm25"]) <= 30 < tokens["full"]
    assert all(column(result, f"p{p} ms")["zettel"] > 0 for p in (50, 95))
    assert column(result, "answer p95 s")["full"] > 0
    assert result["settings"]["prompts of the judge"] == "judge-locomo/1"
    assert any("1 adversarial question" in note for note in result["notes"])
    answers = [text for text in texts(openai) if text.startswith("memories:")]
    assert all('"today":"2024-04-05 Fri"' in text for text in answers)
    assert all('"question":"When did Ben sell' not in text for text in answers)

    asked, contexts = openai.asked, (tmp_path / "answers-locomo" / "contexts.jsonl").read_bytes()
    again = zettel(*command, *window).json()  # nothing is missing, so nothing needs consent
    assert openai.asked == asked
    assert again["rows"] == result["rows"]
    strict = zettel(*command, *window, "--judge", "strict", "--yes").json()
    new = list(openai.requests)[asked:]
    assert all(request["model"] == "judge" for request in new)
    assert len(new) == len({(each["id"], each["answer"]) for each in lines(tmp_path / "answers-locomo/answers.jsonl")})
    assert strict["settings"]["prompts of the judge"] == "judge-strict/1"
    assert (tmp_path / "answers-locomo" / "contexts.jsonl").read_bytes() == contexts


def test_a_killed_run_continues(zettel: Zettel, talk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is killed while the third answer is on its way; the answers before are never asked for again."""
    blocked = threading.Event()

    def reply_twice(request: dict[str, Any]) -> str:
        if server.asked > 2 and not blocked.is_set():
            blocked.wait()
        return reply(request)

    with ModelServer(reply_twice) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        command = ["bench", "answers", "locomo", talk, *NAMES, *SIZES, "--yes", "--json", "-"]
        environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
        with subprocess.Popen([sys.executable, "-m", "zettel", *command], cwd=tmp_path, env=environment) as process:
            wait_for_requests(server, 3, process)
            process.send_signal(signal.SIGKILL)
        folder = tmp_path / "answers-locomo"
        with (folder / "answers.jsonl").open("a") as file:
            file.write('{"id": "pond/1", "sys')  # a write that the kill cut
        blocked.set()
        before = {(each["id"], each["system"]) for each in lines_of_whole(folder / "answers.jsonl")}
        first_texts = texts(server)
        result = zettel(*command).json()
        again = texts(server) - first_texts
        assert column(result, "score")["zettel"] == 0.6667
        assert len(lines(folder / "contexts.jsonl")) == 6
        answered = Counter((each["id"], each["system"]) for each in lines(folder / "answers.jsonl"))
        assert set(answered.values()) == {1}
        assert len(answered) == 6
        assert sum(text.startswith("memories:") for text in again) <= 6 - len(before)


def lines_of_whole(file: Path) -> list[dict[str, Any]]:
    """Return the complete lines of a file."""
    return [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]


def test_bad_answers_and_verdicts_are_retried_and_then_counted(
    zettel: Zettel, talk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moody(request: dict[str, Any]) -> str:
        text = request["messages"][-1]["content"]
        if text.startswith("memories:") and "mend" in text.partition("end of memories")[2]:
            return json.dumps({"answer": " "})
        if text.startswith("grade:") and "sill" in text:
            return json.dumps({"reason": "I am not sure.", "verdict": "MAYBE"})
        return "correct." if text.startswith("grade:") else reply(request)

    with ModelServer(moody, plan=first([Fault.BROKEN])) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        options = ("--contexts", "zettel", "--yes", "--json", "-")
        result = zettel("bench", "answers", "locomo", talk, *NAMES, *options).json()
        assert column(result, "without answer")["zettel"] == 1
        assert column(result, "without verdict")["zettel"] == 1
        assert column(result, "score")["zettel"] == 0.5, "a missing answer counts as 0, a missing verdict is left out"
        assert column(result, "single-hop")["zettel"] == 0.5
        asked = server.asked
        repeats = Counter(text.partition(asking.REMINDER)[0] for text in texts(server))
        assert sorted(repeats.values()) == [1, 1, 1, 3, 3], "a repeated request has another text, because of the cache"
        again = zettel("bench", "answers", "locomo", talk, *NAMES, *options).json()
        assert (again["rows"], server.asked) == (result["rows"], asked), "three useless answers are enough"


def test_an_interrupted_request_leaves_no_other_error(tmp_path: Path) -> None:
    """Ctrl-C cancels the requests on their way."""

    async def interrupted(url: str) -> bool:
        model = LiteLLM("openai/scripted", api_base=url)
        async with asking.opened_cache(tmp_path / "models.db") as store, anyio.create_task_group() as group:
            asker = asking.Asker(store, model, Budget(calls=9))
            request = requests.answer_request(datasets.Asked("1", "Who?", "fact", "Nell", "judge-locomo", 0, None), "")
            group.start_soon(asker.ask, request, requests.parsed_answer)
            await anyio.to_thread.run_sync(wait_for_requests, server, 1)
            group.cancel_scope.cancel()
        return group.cancel_scope.cancelled_caught

    with ModelServer(reply, plan=first([Fault.HANGS])) as server:
        assert anyio.run(interrupted, server.url)


def test_the_budget_of_a_run_ends_it_with_its_answers(
    zettel: Zettel, talk: str, openai: ModelServer, tmp_path: Path
) -> None:
    command = ("bench", "answers", "locomo", talk, *NAMES, *SIZES, "--yes", "--json", "-")
    spent = zettel(*command, "--budget", "calls=4,per=import")
    assert spent.status == 1
    assert "the budget is spent: no calls left" in spent.err
    assert "answers-locomo; the same command continues" in spent.err
    done = lines(tmp_path / "answers-locomo" / "answers.jsonl")
    assert 4 <= openai.asked <= 6
    assert len(done) == len({(each["id"], each["system"]) for each in done})
    assert column(zettel(*command).json(), "score")["zettel"] == 0.6667
    of_judge = zettel(*command, "--judge", "strict", "--budget", "calls=2,per=day")
    assert "the budget of the day is spent" in of_judge.err, "the calls of earlier runs count, those of both models"


def test_no_model_is_called_without_consent(zettel: Zettel, talk: str, openai: ModelServer) -> None:
    result = zettel("bench", "answers", "locomo", talk, *NAMES, *SIZES, stdin=b"y\n")
    assert (result.status, result.out, openai.asked) == (1, "", 0)
    assert "answers: about 6 calls to openai/scripted" in result.err
    assert "verdicts: about 6 calls to openai/judge" in result.err
    assert "confirm with --yes" in result.err


def test_answers_and_verdicts_of_people_come_from_files(
    zettel: Zettel, talk: str, openai: ModelServer, tmp_path: Path
) -> None:
    command = ("bench", "answers", "locomo", talk, "--embedder", "static")
    written = zettel(*command, "--contexts", "zettel,full", "--max-tokens", "30", "--write-contexts", "contexts.jsonl")
    assert "6 contexts written to contexts.jsonl" in written.err
    contexts = lines(tmp_path / "contexts.jsonl")
    assert [(each["id"], each["system"]) for each in contexts[:2]] == [("pond/1", "zettel"), ("pond/1", "full")]
    assert "basil" in contexts[1]["context"].lower()
    assert "Nell" not in json.dumps({**contexts[0], "context": ""}), "the reference answer stays secret"
    others = [{"id": id, "system": "notebook", "answer": "Nell mended the boat."} for id in IDS]
    (tmp_path / "answers.jsonl").write_text(
        "\n".join(json.dumps(each) for each in [*({**each, "answer": "I do not know."} for each in contexts), *others])
    )
    graded = zettel(
        *command, "--answers", "answers.jsonl", "--judge-model", "openai/judge", "--yes", "--json", "-"
    ).json()
    assert column(graded, "score") == {"zettel": 0.0, "full": 0.0, "notebook": 0.6667, "questions": 3}
    assert column(graded, "tokens")["full"] > 30
    assert column(graded, "tokens")["notebook"] is None
    assert graded["settings"]["answers by"] == "unknown"
    verdicts = [{"id": id, "system": "notebook", "score": score} for id, score in zip(IDS, (1, 0.5, 0), strict=True)]
    (tmp_path / "verdicts.jsonl").write_text("\n".join(map(json.dumps, verdicts)))
    asked = openai.asked
    by_hand = zettel(*command, "--answers", "answers.jsonl", "--verdicts", "verdicts.jsonl", "--json", "-").json()
    assert column(by_hand, "score")["notebook"] == 0.5
    assert by_hand["data"] == described(
        *(tmp_path / name for name in (talk, "answers.jsonl", "verdicts.jsonl"))
    )
    assert column(by_hand, "without verdict")["zettel"] == 3
    assert openai.asked == asked
    alone = zettel(*command, "--answer-model", "openai/scripted", "--contexts", "bm25", "--yes")
    assert (alone.status, alone.out) == (0, "")
    assert "3 answers are in answers-locomo/answers.jsonl; grade them" in alone.err


def test_full_texts_beyond_the_window_are_left_out_with_the_reason(
    zettel: Zettel, talk: str, openai: ModelServer
) -> None:
    command = ("bench", "answers", "locomo", talk, *NAMES, "--contexts", "zettel,full", "--yes", "--json", "-")
    unknown = zettel(*command)
    assert [row[0] for row in unknown.json()["rows"]] == ["zettel", "questions"]
    assert "full: 3 of 3 contexts" in unknown.err
    assert "LiteLLM does not know how many tokens openai/scripted reads: pass --window TOKENS" in unknown.err
    small = zettel(*command, "--window", "2010")
    assert "openai/scripted reads 2,010 tokens" in small.err


def test_each_data_set_has_its_judge(zettel: Zettel, openai: ModelServer, tmp_path: Path) -> None:
    """BEAM's criteria are graded one by one, HaluMem's labels are counted, LongMemEval's judge fits the question."""
    common = ("--contexts", "bm25", "--yes", "--json", "-", *NAMES)
    chat = {
        "chat": "boat",
        "messages": [{"id": 1, "role": "user", "content": "The mast is oak, the hull is elm.", "session": 1}],
        "questions": [
            {"question": "Which wood are mast and hull?", "kind": "fact", "evidence": [1], "rubric": ["oak", "ash"]},
            {"question": "Is the mast oak?", "kind": "fact", "evidence": [1], "answer": "mast is oak"},
            {"question": "Which flag has it?", "kind": "never", "evidence": []},
        ],
    }
    (tmp_path / "boat.json").write_text(json.dumps(chat))
    beam = zettel("bench", "answers", "beam", "boat.json", *common).json()
    assert column(beam, "score")["bm25"] == 0.75
    assert any("1 questions without a rubric" in note for note in beam["notes"])
    assert beam["settings"]["prompts of the judge"] == "judge-beam/1"

    day = "Sep {:02}, 2025, 18:42:18"
    sessions = [
        {"dialogue": [{"role": "user", "content": text, "timestamp": day.format(n)}], "memory_points": [],
         "questions": [{"question": "Where does Ida work?", "answer": answer, "question_type": "Recall",
                        "evidence": []}]}
        for n, (text, answer) in enumerate([("I work in Bergen.", "Bergen"), ("Now I work in Oslo.", "Turku")], 1)
    ]  # fmt: skip
    (tmp_path / "halu.jsonl").write_text(json.dumps({"uuid": "u1", "sessions": sessions}))
    halumem = zettel("bench", "answers", "halumem", "halu.jsonl", *common).json()
    assert column(halumem, "score")["bm25"] == 0.5
    assert column(halumem, "omission") == {"bm25": 0.5, "questions": None}
    contexts = lines(tmp_path / "answers-halumem" / "contexts.jsonl")
    assert "Oslo" not in contexts[0]["context"], "the first question is asked before the second session"
    assert "Oslo" in contexts[1]["context"]

    kinds = ["multi-session", "temporal-reasoning", "knowledge-update", "single-session-preference"]
    turns = [[{"role": "user", "content": "I keep two hives of bees."}, {"role": "assistant", "content": "Good."}]]
    haystacks = [
        {"question_id": f"q{n}{'_abs' if n == 5 else ''}", "question_type": kind, "question": "How many hives?",
         "answer": 2, "question_date": "2023/06/01 (Thu) 10:00", "haystack_sessions": turns,
         "haystack_session_ids": ["a"], "haystack_dates": ["2023/05/20 (Sat) 02:21"]}
        for n, kind in enumerate([*kinds, kinds[0]], 1)
    ]  # fmt: skip
    (tmp_path / "haystacks.json").write_text(json.dumps(haystacks))
    result = zettel("bench", "answers", "longmemeval", "haystacks.json", *common).json()
    names = ["abstention", "fact", "preference", "temporal", "update"]
    assert result["settings"]["prompts of the judge"] == ", ".join(f"judge-longmemeval-{name}/1" for name in names)
    assert any('"question":"How many hives?","today":"2023-06-01 Thu"' in text for text in texts(openai))


DAMAGED = (
    "bad.jsonl, line 1: answer", "two lines about pond/1", "question_id is missing", "is not a chat",
    "is not a user of HaluMem",
)  # fmt: skip
"""Errors of files that contain something else, which exit with 1; wrong arguments exit with 2."""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["multihop", "talk.json", *NAMES], "'multihop': use one of locomo, longmemeval, beam, halumem"),
        (["locomo", "missing.json", *NAMES], "the file missing.json does not exist"),
        (["locomo", "talk.json"], "--answer-model"),
        (["locomo", "talk.json", "--answers", "missing.jsonl"], "--judge-model"),
        (["locomo", "talk.json", "--answers", "missing.jsonl", "--judge-model", "openai/x"], "does not exist"),
        (["locomo", "talk.json", "--answers", "bad.jsonl", "--judge-model", "openai/x"], "bad.jsonl, line 1: answer"),
        (["locomo", "talk.json", "--answers", "other.jsonl", "--judge-model", "openai/x"], "no line about a question"),
        (["locomo", "talk.json", "--answers", "twice.jsonl", "--judge-model", "openai/x"], "two lines about pond/1"),
        (["locomo", "talk.json", *NAMES, "--answers", "bad.jsonl"], "leave one out"),
        (["locomo", "talk.json", *NAMES, "--verdicts", "bad.jsonl"], "leave one out"),
        (["locomo", "talk.json", *NAMES, "--write-contexts", "new.jsonl"], "calls no model"),
        (["locomo", "talk.json", *NAMES, "--contexts", "zettel,mem0"], "unknown context 'mem0'"),
        (["locomo", "talk.json", "--answer-model", "mymodel"], "has no provider in its name"),
        (["locomo", "talk.json", "--answer-model", "opnai/gpt-4o"], "unknown provider 'opnai'"),
        (["locomo", "talk.json", "--answer-model", "anthropic/claude-x"], "set ANTHROPIC_API_KEY"),
        (["locomo", "talk.json", *NAMES, "--out", "talk.json"], "talk.json is a file"),
        (["locomo", "talk.json", *NAMES, "--budget", "euros=3"], "unknown limit 'euros'"),
        (["locomo", "empty.json", *NAMES], "no question with a reference answer"),
        (["longmemeval", "talk.json", *NAMES], "question_id is missing"),
        (["beam", "talk.json", *NAMES], "is not a chat"),
        (["halumem", "talk.json", *NAMES], "is not a user of HaluMem"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_line(
    zettel: Zettel, talk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    line = {"id": "pond/1", "system": "x", "answer": "Nell"}
    (tmp_path / "bad.jsonl").write_text(json.dumps({"id": "pond/1", "system": "x", "answer": 7}))
    (tmp_path / "other.jsonl").write_text(json.dumps(line | {"id": "lake/1"}))
    (tmp_path / "twice.jsonl").write_text("\n".join([json.dumps(line)] * 2))
    (tmp_path / "empty.json").write_text(json.dumps([TALK[0] | {"qa": []}]))
    result = zettel("bench", "answers", *arguments)
    status = 1 if message in DAMAGED else 2
    assert (result.status, result.out, result.err.count("\n")) == (status, "", 1), result
    assert message in result.err


def test_contexts_of_other_settings_need_another_folder(zettel: Zettel, talk: str, openai: ModelServer) -> None:
    command = ("bench", "answers", "locomo", talk, *NAMES, "--contexts", "bm25", "--yes", "--json", "-")
    zettel(*command).json()
    other = zettel(*command, "--max-tokens", "77")
    assert (other.status, other.out) == (2, "")
    assert "answers-locomo has contexts with max_tokens 1500 instead of 77: name another folder" in other.err
    zettel(*command, "--max-tokens", "77", "--out", "small").json()


def test_a_small_model_answers_and_judges(
    zettel: Zettel, talk: str, small_model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model of 135 million parameters mostly errs, but each of its answers is graded or counted."""
    monkeypatch.setenv("OPENAI_API_BASE", small_model)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(requests, "MAX_TOKENS", 60)
    names = ("--answer-model", "openai/smollm2", "--judge-model", "openai/smollm2", "--embedder", "static")
    options = ("--contexts", "zettel", "--questions", "1", "--max-tokens", "60", "--yes", "--json", "-")
    result = zettel("bench", "answers", "locomo", talk, *names, *options).json()
    assert column(result, "score")["questions"] == 1
    graded = column(result, "score")["zettel"]
    assert graded in (0.0, 1.0) or column(result, "without verdict")["zettel"] == 1
