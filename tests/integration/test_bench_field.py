"""The benchmarks of others on small files in the layouts that their authors publish."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.described import described
from tests.integration.command import Zettel
from zettel.bench import multihop
from zettel.bench.memoryagentbench import current_fact

pytestmark = pytest.mark.integration


def column(result: dict[str, Any], name: str) -> dict[str, Any]:
    place = result["columns"].index(name)
    return {row[0]: row[place] for row in result["rows"]}


WRONG_ARGUMENTS = (
    "does not exist", "no question with evidence", "no row with evidence", "no question needs a passage",
    "several corpora", "no single-hop question",
)  # fmt: skip
"""Errors that another path or option would mend; the others are about what a file contains."""


def one_error(zettel: Zettel, *arguments: str) -> str:
    """Return the error of a command, which must be one line on stderr, with the status 2 only of wrong arguments."""
    result = zettel("bench", *arguments)
    status = 2 if any(text in result.err for text in WRONG_ARGUMENTS) else 1
    assert (result.status, result.out, result.err.count("\n")) == (status, "", 1), result
    return result.err


# --------------------------------------------------------------------------------------------------------- LongMemEval


def turn(role: str, content: str, has_answer: bool | None = None) -> dict[str, Any]:
    return {"role": role, "content": content} | ({} if has_answer is None else {"has_answer": has_answer})


def haystack(id: str, kind: str, question: str, sessions: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return a question in LongMemEval's layout."""
    return {
        "question_id": id, "question_type": kind, "question": question, "answer": "…",
        "question_date": "2023/06/01 (Thu) 10:00",
        "haystack_session_ids": list(sessions),
        "haystack_dates": [f"2023/05/{day:02} (Sat) 02:21" for day in range(1, len(sessions) + 1)],
        "haystack_sessions": list(sessions.values()),
        "answer_session_ids": [name for name in sessions if name.startswith("answer")],
    }  # fmt: skip


CHAT = {
    "sharegpt_kq1_0": [turn("user", "A soup for six, please."), turn("assistant", "Leek and potato.")],
    "ultrachat_9": [turn("user", "Explain how tides work."), turn("assistant", "The moon pulls the sea.")],
}
LONGMEMEVAL = [
    haystack("harp_1", "single-session-user", "Whom did I sell my harp to?", CHAT | {
        "answer_harp_1": [
            turn("user", "How do I ship a parcel?", False), turn("assistant", "In a padded crate.", False),
            turn("user", "I sold my harp to Ilse yesterday.", True), turn("assistant", "Congratulations!", False),
        ],
    }),
    haystack("bees_2", "multi-session", "How many hives of bees do I keep?", {
        "answer_bees_1": [turn("user", "I keep two hives of bees.", True), turn("assistant", "Good.", False)],
        **CHAT,
        "answer_bees_2": [turn("user", "My third hive of bees has arrived.", True), turn("assistant", "", False)],
    }),
    haystack("mast_3", "single-session-assistant", "Which varnish did you suggest for the oak mast?", CHAT | {
        "answer_mast_1": [turn("user", "It is bare.", False), turn("assistant", "Use tung varnish on oak.", True)],
    }),
    haystack("boat_4_abs", "multi-session", "How many boats have I built?", CHAT),
]  # fmt: skip


@pytest.fixture
def haystacks(tmp_path: Path) -> str:
    (tmp_path / "longmemeval_s_cleaned.json").write_text(json.dumps(LONGMEMEVAL))
    return "longmemeval_s_cleaned.json"


def test_longmemeval_has_both_levels_and_skips_as_published(zettel: Zettel, haystacks: str) -> None:
    result = zettel("bench", "longmemeval", haystacks, "-k", "1", "-k", "2", "--json", "-").json()
    assert [row[0] for row in result["rows"]] == ["zettel", "BM25", "vectors", "RRF", "asked"]
    assert result["ran_on"]["questions"] == 2
    assert result["settings"]["turns stored"] == "user"
    assert any("1 abstention questions, 1 questions without a labelled turn" in note for note in result["notes"])
    for level in ("session", "turn"):
        assert column(result, f"{level} any@1")["BM25"] == 1.0
        assert column(result, f"{level} all@1") == {
            "zettel": 0.5, "BM25": 0.5, "vectors": 0.5, "RRF": 0.5, "asked": 2,
        }, "one place cannot contain both sessions of the bees"  # fmt: skip
        assert column(result, f"{level} all@2")["zettel"] == 1.0
        assert column(result, f"{level} NDCG@2")["zettel"] == 1.0
        assert column(result, f"{level} MRR")["zettel"] == 1.0
        assert column(result, f"low {level} all@2")["BM25"] is not None
    assert column(result, "multi-session all@2")["asked"] == 1


def test_longmemeval_stores_the_answers_of_the_assistant_if_asked_to(zettel: Zettel, haystacks: str) -> None:
    options = ("--turns", "all", "--beside", "none", "--json", "-")
    result = zettel("bench", "longmemeval", haystacks, *options).json()
    assert result["ran_on"]["questions"] == 3
    assert column(result, "single-session-assistant all@10")["zettel"] == 1.0
    assert "turn all@5" in result["columns"]
    assert any("0 questions without a labelled turn among those stored, 1 empty" in note for note in result["notes"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[{", "longmemeval.json"),
        (json.dumps([{"question": "Who?"}]), "question_id is missing"),
        (json.dumps([LONGMEMEVAL[0] | {"haystack_sessions": None}]), "haystack_sessions is missing"),
        (json.dumps([LONGMEMEVAL[3]]), "no question with evidence"),
        (json.dumps([7]), "question_id is missing"),
        ("", "longmemeval.json"),
    ],
)
def test_other_files_are_not_longmemeval(zettel: Zettel, tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "longmemeval.json").write_text(content)
    assert message in one_error(zettel, "longmemeval", "longmemeval.json")


# --------------------------------------------------------------------------------------------- MuSiQue, HotpotQA, 2Wiki

HERON = {"title": "Blue Heron", "text": "Blue Heron is a film. It is by Mira Solveng."}
MIRA = {"title": "Mira Solveng", "text": "Mira Solveng was born in Tarn Hollow."}
OTHER_MIRA = {"title": "Mira Solveng", "text": "Mira Solveng is also the name of a ferry."}
TARN = {"title": "Tarn Hollow", "text": "A village in the north."}
CORPUS = [HERON, MIRA, OTHER_MIRA, TARN]
BORN = "Where was the director of Blue Heron born?"
MUSIQUE = [
    {
        "id": "2hop__12_34", "question": BORN, "answer": "Tarn Hollow", "answer_aliases": [], "answerable": True,
        "paragraphs": [
            {"idx": 0, "title": "Blue Heron", "paragraph_text": HERON["text"], "is_supporting": True},
            {"idx": 1, "title": "Mira Solveng", "paragraph_text": MIRA["text"], "is_supporting": True},
            {"idx": 2, "title": "Tarn Hollow", "paragraph_text": TARN["text"], "is_supporting": False},
        ],
        "question_decomposition": [],
    },
    {
        "id": "3hop1__5_6_7", "question": "Which ferry is named after the director of Blue Heron?", "answer": "…",
        "paragraphs": [
            {"idx": 0, "title": "Mira Solveng", "paragraph_text": OTHER_MIRA["text"], "is_supporting": True},
            {"idx": 1, "title": "Lost Page", "paragraph_text": "Nowhere.", "is_supporting": True},
        ],
    },
]  # fmt: skip
HOTPOTQA = [
    {
        "_id": "5a8b", "question": BORN, "answer": "Tarn Hollow", "type": "bridge", "level": "hard",
        "supporting_facts": [["Blue Heron", 1], ["Mira Solveng", 0]],
        "context": [
            ["Blue Heron", ["Blue Heron is a film.", " It is by Mira Solveng."]],
            ["Mira Solveng", ["Mira Solveng was born in Tarn Hollow."]],
            ["Tarn Hollow", ["A village in the north."]],
        ],
    }
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "questions", "asked"),
    [("musique", MUSIQUE, 2), ("hotpotqa", HOTPOTQA, 1), ("2wikimultihopqa", HOTPOTQA, 1)],
)
def test_multihop_reads_hipporags_files(
    zettel: Zettel, tmp_path: Path, name: str, questions: list[dict[str, Any]], asked: int
) -> None:
    (tmp_path / f"{name}_corpus.json").write_text(json.dumps(CORPUS))
    (tmp_path / f"{name}.json").write_text(json.dumps(questions))
    for path in (f"{name}_corpus.json", "."):
        result = zettel("bench", "multihop", path, "-k", "2", "-k", "4", "--json", "-").json()
        assert [row[0] for row in result["rows"]] == ["zettel", "BM25", "vectors", "RRF", "asked"]
        assert column(result, "recall@4") == {"zettel": 1.0, "BM25": 1.0, "vectors": 1.0, "RRF": 1.0, "asked": asked}
        assert column(result, "perfect@4")["zettel"] == 1.0
        assert column(result, "p recall@2")["BM25"] is not None
        assert result["data"] == described(tmp_path / f"{name}_corpus.json", tmp_path / f"{name}.json")
    kinds = [head for head in result["columns"] if head.startswith(("2hop", "3hop1"))]
    assert kinds == (["2hop recall@4", "3hop1 recall@4"] if name == "musique" else [])
    dropped = "1 needed passages" if name == "musique" else "0 needed passages"
    assert any(dropped in note for note in result["notes"])


def test_texts_distinguish_passages_with_the_same_title(tmp_path: Path) -> None:
    corpus, questions = tmp_path / "musique_corpus.json", tmp_path / "musique.json"
    corpus.write_text(json.dumps([*CORPUS, MIRA]))
    questions.write_text(json.dumps([*MUSIQUE, {"question": "Who?", "titles": ["Mira Solveng"]}]))
    collection, dropped = multihop.read(corpus, questions)
    assert [event.external_id for event in collection.events] == [
        "Blue Heron", "Mira Solveng", "Mira Solveng (2)", "Tarn Hollow",
    ]  # fmt: skip
    assert [sorted(question.needed) for question in collection.questions] == [
        ["Blue Heron", "Mira Solveng"], ["Mira Solveng (2)"], ["Mira Solveng", "Mira Solveng (2)"],
    ]  # fmt: skip
    assert dropped == 1


def test_other_files_are_not_multihop(zettel: Zettel, tmp_path: Path) -> None:
    assert "NAME_corpus.json and NAME.json" in one_error(zettel, "multihop", ".")
    (tmp_path / "a_corpus.json").write_text(json.dumps(CORPUS))
    assert "a.json does not exist" in one_error(zettel, "multihop", "a_corpus.json")
    for content, message in [
        ([{"question": BORN}], "question 1: the needed passages cannot be read"),
        ([{"question": BORN, "supporting_facts": [["Blue Heron", 1]], "context": [7]}], "question 1"),
        ([{"titles": ["Blue Heron"]}], "expected an object with question"),
        ([{"question": BORN, "titles": ["Lost Page"]}], "no question needs a passage"),
        ([], "no question needs a passage"),
    ]:
        (tmp_path / "a.json").write_text(json.dumps(content))
        assert message in one_error(zettel, "multihop", "a_corpus.json")
    (tmp_path / "a_corpus.json").write_text(json.dumps([{"title": "Blue Heron"}]))
    assert "expected an object with title and text" in one_error(zettel, "multihop", "a_corpus.json")
    (tmp_path / "b_corpus.json").write_text(json.dumps(CORPUS))
    assert "several corpora" in one_error(zettel, "multihop", ".")


# ---------------------------------------------------------------------------------------------------------- PersonaMem

TEA = "I'd rather drink jasmine tea, coffee keeps me awake."
HISTORY = {
    "metadata": {"persona_id": 7, "total_messages": 6},
    "chat_history": [
        {"role": "system", "content": "Current user persona: likes jasmine tea."},
        {"role": "user", "content": "Please proofread this email about the office kitchen. " + TEA},
        {"role": "assistant", "content": "Here is the corrected email about the kitchen."},
        {"role": "user", "content": "How do I renew a passport?"},
        {"role": "assistant", "content": "With a form and a picture."},
        {"role": "user", "content": " "},
    ],
}
COLUMNS = ["persona_id", "chat_history_32k_link", "chat_history_128k_link", "user_query", "pref_type",
           "related_conversation_snippet"]  # fmt: skip
LINK = "data/chat_history_32k/chat_history_7.json"
SNIPPET = json.dumps([{"role": "user", "content": "Please proofread this email about the  office kitchen.\n" + TEA}])


def persona_row(query: str, kind: str, snippet: str, link: str = LINK) -> list[str]:
    return ["7", link, link.replace("32k", "128k"), query, kind, snippet]


@pytest.fixture
def personas(tmp_path: Path) -> str:
    """Write the data set's folder and return the path of its table."""
    history = tmp_path / LINK
    history.parent.mkdir(parents=True)
    history.write_text(json.dumps(HISTORY))
    write_table(tmp_path, [
        persona_row(repr({"role": "user", "content": "Which jasmine tea shall I drink?"}), "neutral", SNIPPET),
        persona_row("What about the office kitchen?", "ask_to_forget", SNIPPET),
        persona_row("Which shoes fit me?", "neutral", json.dumps([{"role": "user", "content": "I run."}])),
    ])  # fmt: skip
    return TABLE


TABLE = "benchmark/text/benchmark.csv"


def write_table(folder: Path, rows: list[list[str]], columns: list[str] = COLUMNS) -> None:
    (folder / TABLE).parent.mkdir(parents=True, exist_ok=True)
    with (folder / TABLE).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows])


def test_personamem_finds_the_messages_that_reveal_a_preference(
    zettel: Zettel, personas: str, tmp_path: Path
) -> None:
    result = zettel("bench", "personamem", personas, "-k", "1", "--json", "-").json()
    assert result["ran_on"]["messages"] == 4, "neither the hidden persona nor the empty message"
    assert [row[0] for row in result["rows"]] == ["zettel", "BM25", "vectors", "RRF", "asked"]
    assert (column(result, "recall@1")["zettel"], column(result, "recall@1")["asked"]) == (1.0, 2)
    assert column(result, "MRR")["zettel"] == 1.0
    assert column(result, "ask_to_forget @1")["asked"] == 1
    assert result["data"] == described(tmp_path / TABLE, tmp_path / LINK)
    assert any("1 rows without a message of their evidence" in note for note in result["notes"])


def test_other_files_are_not_personamem(zettel: Zettel, personas: str, tmp_path: Path) -> None:
    assert "chat_history_128k/chat_history_7.json" in one_error(zettel, "personamem", personas, "--size", "128k")
    write_table(tmp_path, [persona_row("Who?", "neutral", "nothing")])
    assert "no row with evidence" in one_error(zettel, "personamem", personas)
    write_table(tmp_path, [persona_row(" ", "neutral", SNIPPET)])
    assert "row 1: user_query" in one_error(zettel, "personamem", personas)
    write_table(tmp_path, [persona_row("Who?", "neutral", SNIPPET)[:4]])
    assert "row 1: the row is cut off" in one_error(zettel, "personamem", personas)
    write_table(tmp_path, [["7"]], ["persona_id"])
    assert "no column chat_history_32k_link" in one_error(zettel, "personamem", personas)
    write_table(tmp_path, [persona_row("Who?", "neutral", SNIPPET)])
    (tmp_path / LINK).write_text("{")
    assert "is not JSON" in one_error(zettel, "personamem", personas)
    (tmp_path / LINK).write_text("{}")
    assert "no messages under chat_history" in one_error(zettel, "personamem", personas)


# ---------------------------------------------------------------------------------------------------- MemoryAgentBench

FACTS = """Here is a list of facts:
0. The capital of Velmoria is Osset.
1. Ada Quill was born in the city of Tarn.
2. The chairperson of the Reed Guild is Ada Quill.
3. The capital of Velmoria is Lumen.
4. The spouse of Ada Quill is Bo Marsh.
5. The chairperson of the Reed Guild is Bo Marsh."""
CONFLICTS = [
    {
        "context": FACTS,
        "questions": [
            "What is the capital of Velmoria?", "Who is the spouse of Ada Quill?", "Who painted the barn?",
            "Who chairs the Reed Guild?",
        ],
        "answers": [["Lumen"], ["Bo Marsh", "Marsh"], ["Nobody"], ["Ada Quill"]],
        "metadata": {"source": "factconsolidation_sh_6k", "qa_pair_ids": ["a", "b", "c", "d"]},
    },
    {
        "context": FACTS, "questions": ["Where was the chairperson of the Reed Guild born?"], "answers": [["Tarn"]],
        "metadata": {"source": "factconsolidation_mh_6k", "qa_pair_ids": ["e"]},
    },
]  # fmt: skip


@pytest.mark.parametrize("name", ["conflicts.jsonl", "Conflict_Resolution-00000-of-00001.parquet"])
def test_memoryagentbench_finds_current_facts(zettel: Zettel, tmp_path: Path, name: str) -> None:
    if name.endswith(".parquet"):
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(CONFLICTS), tmp_path / name)
    else:
        (tmp_path / name).write_text("\n".join(map(json.dumps, CONFLICTS)))
    result = zettel("bench", "memoryagentbench", name, "-k", "2", "--json", "-").json()
    assert [row[0] for row in result["rows"]] == ["zettel", "BM25", "vectors", "RRF", "asked"]
    assert result["ran_on"]["facts"] == 6
    assert column(result, "recall@2") == {"zettel": 1.0, "BM25": 1.0, "vectors": 1.0, "RRF": 1.0, "asked": 2}
    assert column(result, "current first")["asked"] == 1
    assert column(result, "current first")["BM25"] == 0.0, "both versions have the same score, the older one is first"
    assert column(result, "6k @2")["asked"] == 2
    assert any("1 multi-hop questions, 2 questions whose current fact" in note for note in result["notes"])


def test_the_current_fact_is_the_newest_that_answers() -> None:
    facts = {0: "The capital of Osset is Lumen.", 3: "The capital of Velmoria is Osset.",
             7: "The capital of Velmoria is Lumen.", 9: "The river of Osset is Lumen."}  # fmt: skip
    assert current_fact(facts, "What is the capital of Velmoria?", ["Lumen"]) == (7, (3,))
    assert current_fact(facts, "What is the river of Osset?", ["lumen"]) == (9, ())
    assert current_fact(facts, "What is the capital of Velmoria?", ["Osset"]) is None, "a newer version contradicts it"
    assert current_fact(facts, "What is the capital of Velmoria?", ["Tarn", ""]) is None


def test_other_files_are_not_memoryagentbench(zettel: Zettel, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("no table")
    assert "is not a Parquet file" in one_error(zettel, "memoryagentbench", "a.parquet")
    for content, message in [
        ({"context": FACTS}, "row 1: expected context"),
        (CONFLICTS[0] | {"answers": []}, "row 1: expected context"),
        (CONFLICTS[1], "no single-hop question"),
        (CONFLICTS[0] | {"context": "A story."}, "no single-hop question"),
    ]:
        (tmp_path / "a.jsonl").write_text(json.dumps(content))
        assert message in one_error(zettel, "memoryagentbench", "a.jsonl")
    (tmp_path / "a.jsonl").write_text("{")
    assert "a.jsonl:1" in one_error(zettel, "memoryagentbench", "a.jsonl")


# ------------------------------------------------------------------------------------------------------------- HaluMem

OLD_JOB, NEW_JOB = "Ida Brandt works as a nurse in Bergen", "Ida Brandt works as a midwife in Tromso"
GOATS = "Ida Brandt's brother Leif keeps goats"


def halumem_session(day: int, message: str, points: list[dict[str, Any]], **questions: Any) -> dict[str, Any]:
    """Return a session in HaluMem's layout."""
    time = f"Sep {day:02}, 2025, 18:42:18"
    dialogue = [
        {"role": "user", "content": message, "timestamp": time, "dialogue_turn": 0},
        {"role": "assistant", "content": "Thank you for telling me.", "timestamp": time, "dialogue_turn": 0},
    ]
    points = [point | {"timestamp": time} for point in points]
    return {"start_time": time, "dialogue": dialogue, "memory_points": points} | questions


def point(content: str, source: str = "primary", old: str | None = None) -> dict[str, Any]:
    return {
        "index": 1, "memory_content": content, "memory_type": "Persona Memory", "memory_source": source,
        "is_update": "False" if old is None else "True", "original_memories": [] if old is None else [old],
        "importance": 0.75,
    }  # fmt: skip


def asked(question: str, kind: str, *evidence: str) -> dict[str, Any]:
    points = [{"memory_content": content, "memory_type": "Persona Memory"} for content in evidence]
    return {"question": question, "answer": "…", "evidence": points, "difficulty": "easy", "question_type": kind}


HALUMEM = {
    "uuid": "4c1f", "persona_info": "Name: Ida Brandt; Gender: F",
    "sessions": [
        halumem_session(
            4, "I work as a nurse at the hospital in Bergen.", [point(OLD_JOB)],
            questions=[
                asked("Where does Ida Brandt work as a nurse?", "Basic Fact Recall", OLD_JOB),
                asked("Which instrument does the uncle of Ida play?", "Memory Boundary"),
                asked("What animals does Leif keep?", "Basic Fact Recall", GOATS),
            ],
        ),
        halumem_session(5, "My brother Leif keeps goats.", [point(GOATS), point("Ida hates goats", "interference")]),
        halumem_session(
            20, "Since Monday I am a midwife, in Tromso.", [point(NEW_JOB, "secondary", OLD_JOB)],
            questions=[asked("Does Ida Brandt work as a midwife in Tromso?", "Dynamic Update", NEW_JOB)],
        ),
        {"is_generated_qa_session": True, "start_time": "Sep 21, 2025, 18:42:18", "dialogue": [
            {"role": "user", "content": "What is 7 times 8?", "timestamp": "Sep 21, 2025, 18:42:18"},
        ]},
    ],
}  # fmt: skip


@pytest.fixture
def users(tmp_path: Path) -> str:
    (tmp_path / "HaluMem-Medium.jsonl").write_text(json.dumps(HALUMEM) + "\n" + json.dumps(HALUMEM | {"uuid": "77"}))
    return "HaluMem-Medium.jsonl"


def test_halumem_asks_after_each_session_and_ranks_new_facts_before_old_ones(zettel: Zettel, users: str) -> None:
    result = zettel("bench", "halumem", users, "-k", "1", "-k", "3", "--json", "-").json()
    assert result["columns"][0] == "recall of sessions"
    assert [row[0] for row in result["rows"]] == ["zettel", "BM25", "vectors", "RRF", "asked"]
    assert result["ran_on"]["users"] == 2
    assert result["ran_on"]["events"] == 14
    systems = {"zettel": 1.0, "BM25": 1.0, "vectors": 1.0, "RRF": 1.0}
    for name in ("questions @1", "questions @3", "updates @1", "order of updates", "order of questions"):
        assert {system: column(result, name)[system] for system in systems} == systems, name
    assert column(result, "questions @1")["asked"] == 4, "one has no evidence, one is about a later session"
    assert column(result, "AUROC")["asked"] == 2
    assert column(result, "updates @1")["asked"] == 2
    assert any("2 questions whose evidence is not among" in note for note in result["notes"])
    assert any("needs a judge model" in note for note in result["notes"])


def test_halumem_points_replace_dialogues_without_interference(zettel: Zettel, users: str) -> None:
    result = zettel("bench", "halumem", users, "--events", "points", "--beside", "bm25", "--json", "-").json()
    assert result["columns"][0] == "recall of memory points"
    assert result["ran_on"]["events"] == 6, "three points of each user are true"
    assert column(result, "Dynamic Update @10") == {"zettel": 1.0, "BM25": 1.0, "asked": 2}
    assert column(result, "order of questions")["BM25"] == 1.0


def test_an_old_fact_before_the_new_one_is_out_of_order(zettel: Zettel, tmp_path: Path) -> None:
    sessions = json.loads(json.dumps(HALUMEM["sessions"]))
    sessions[2]["questions"] = [asked("Is Ida Brandt a nurse in Bergen?", "Dynamic Update", NEW_JOB)]
    (tmp_path / "old.jsonl").write_text(json.dumps({"uuid": "1", "sessions": sessions}))
    result = zettel("bench", "halumem", "old.jsonl", "--beside", "bm25", "--json", "-").json()
    assert column(result, "order of questions")["BM25"] == 0.0
    assert column(result, "order of updates")["BM25"] == 1.0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"uuid": "1"}, "user 1 is not a user of HaluMem: the field 'sessions' is missing"),
        ({"uuid": "1", "sessions": [{"dialogue": [{"role": "user", "content": 7}]}]}, "is not a user of HaluMem"),
        ({"uuid": "1", "sessions": [halumem_session(4, "Hi.", []) | {"dialogue": [
            {"role": "user", "content": "Hi.", "timestamp": "yesterday"}]}]}, "yesterday"),
        ({"uuid": "1", "sessions": [halumem_session(4, "Hi.", [])]}, "no question with evidence"),
        ([], "halumem.jsonl"),
    ],
)  # fmt: skip
def test_other_files_are_not_halumem(zettel: Zettel, tmp_path: Path, content: Any, message: str) -> None:
    (tmp_path / "halumem.jsonl").write_text(json.dumps(content))
    assert message in one_error(zettel, "halumem", "halumem.jsonl")
