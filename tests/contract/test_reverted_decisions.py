"""No job repeats a decision that a person reverted, whatever else changes in the note."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.contract.conftest import BACKENDS, EVERY_STORE
from tests.contract.support import noted
from zettel import LinkType, Memory
from zettel.errors import InvalidInput, NotFound
from zettel.model import JobKind, LinkKey

pytestmark = pytest.mark.over_http

BERGEN = "I live in Bergen, above a bakery."
OSLO = "Big news: I live in Oslo now!"


def moved(memory: Memory) -> tuple[str, str]:
    old = memory.add(BERGEN, speaker="Ann", occurred_at="2024-01-10", wait=True)
    new = memory.add(OSLO, speaker="Ann", occurred_at="2024-05-01", wait=True)
    return old, new


def contradicting(memory: Memory) -> tuple[str, str]:
    """Return two undated notes that contradict each other, the older one first, among dated notes."""
    memory.add("Ida has painted the boat.", occurred_at="2024-03-01", wait=True)
    first = memory.add("Ben lives in Rome.", source="chat.txt:3", wait=True)
    return first, memory.add("Ben lives in Turin.", wait=True)


def has_link(memory: Memory, source: str, target: str, kind: LinkType) -> bool:
    return LinkKey(source, target, kind) in {link.key for link in memory.links(source)}


def test_a_reverted_replacement_stays_reverted_after_an_update(memory: Memory) -> None:
    old, new = moved(memory)
    assert noted(memory, old).valid_to
    memory.revert(new, 1)
    memory.update(new, content="Big news, at last: I live in Oslo now!")
    memory.flush()
    memory.evolve()
    assert not has_link(memory, new, old, LinkType.SUPERSEDES)
    assert noted(memory, old).valid_to is None


def test_a_link_that_the_older_note_has_stays_reverted(memory: Memory) -> None:
    new = memory.add(OSLO, speaker="Ann", occurred_at="2024-05-01", wait=True)
    old = memory.add(BERGEN, speaker="Ann", occurred_at="2024-01-10", wait=True)  # arrives late, and has the link
    assert has_link(memory, new, old, LinkType.SUPERSEDES)
    memory.unlink(new, old, "SUPERSEDES")
    assert noted(memory, old).valid_to is None
    memory.link(new, old, "SUPERSEDES")
    memory.revert(new, noted(memory, new).version - 1)  # what is reverted in one note, the other respects
    memory.update(old, content="I live in Bergen, above a little bakery.")
    memory.flush()
    assert not has_link(memory, new, old, LinkType.SUPERSEDES)


def test_a_restored_decision_is_live(memory: Memory) -> None:
    old, new = moved(memory)
    version = noted(memory, new).version
    memory.revert(new, 1)
    memory.revert(new, version)  # reverts the revert
    memory.update(new, content="Big news, at last: I live in Oslo now!")
    memory.flush()
    assert has_link(memory, new, old, LinkType.SUPERSEDES)


def test_a_decision_stays_reverted_when_its_revision_is_erased(memory: Memory) -> None:
    text = "When Ann plays the cello, Kestrel the dog howls in the {}."
    other, deleted, note = (memory.add(text.format(place), wait=True) for place in ("hall", "kitchen", "cellar"))
    assert {link.target for link in memory.links(note)} == {other, deleted}
    memory.revert(note, 1)
    memory.delete(deleted)  # erases the revision that linked both
    memory.update(note, content=text.format("cold cellar"))
    memory.flush()
    assert memory.links(note) == []
    assert deleted not in str(memory.history(note))
    memory.delete(other)
    assert other not in str(memory.history(note))


def test_links_of_an_earlier_wording_stay_replaced(memory: Memory) -> None:
    old, new = moved(memory)
    for text in ("The kiln is cold.", "The lighthouse was painted white.", "Cellos need humid air."):
        memory.update(new, content=text)
        memory.flush()
        assert not has_link(memory, new, old, LinkType.SUPERSEDES)


def test_unlink_removes_one_link_for_good(memory: Memory) -> None:
    old, new = moved(memory)
    other = memory.add("A note about cellos.", wait=True)
    memory.link(new, other, reason="I asked")
    version = noted(memory, new).version
    link = memory.unlink(new, old, LinkType.SUPERSEDES)
    assert (link.source, link.target, link.type) == (new, old, LinkType.SUPERSEDES)
    assert noted(memory, old).valid_to is None
    assert has_link(memory, new, other, LinkType.RELATES)
    *_, last = memory.history(new)
    assert (last.version, last.cause.by, last.unlinks) == (version + 1, "user", (link.key,))
    memory.update(new, content="Big news, at last: I live in Oslo now!")
    memory.flush()
    assert not has_link(memory, new, old, LinkType.SUPERSEDES)
    memory.link(new, old, "SUPERSEDES", reason="after all")
    memory.update(new, content="Big news, everybody: I live in Oslo now!")
    memory.flush()
    assert has_link(memory, new, old, LinkType.SUPERSEDES)
    memory.unlink(new, old, "SUPERSEDES")
    memory.revert(new, noted(memory, new).version - 1)
    assert has_link(memory, new, old, LinkType.SUPERSEDES)


def test_unlink_without_such_a_link_raises(memory: Memory) -> None:
    old, new = moved(memory)
    with pytest.raises(InvalidInput, match="no SUPERSEDES link"):
        memory.unlink(old, new, "SUPERSEDES")
    with pytest.raises(InvalidInput, match="to itself"):
        memory.unlink(new, new, "SUPERSEDES")
    with pytest.raises(InvalidInput, match="no CONTRADICTS link"):
        memory.unlink(new, old, "CONTRADICTS")
    with pytest.raises(InvalidInput, match="must be one of RELATES, SUPERSEDES, UPDATES, CONTRADICTS"):
        memory.unlink(new, old, "MENTIONS")
    for source, target in (("n_0", old), (old, "n_0")):
        with pytest.raises(NotFound):
            memory.unlink(source, target)
    memory.unlink(new, old, "SUPERSEDES")
    with pytest.raises(InvalidInput, match="no SUPERSEDES link"):
        memory.unlink(new, old, "SUPERSEDES")


@pytest.mark.parametrize("keeps_older", [True, False])
def test_resolve_settles_a_conflict(memory: Memory, keeps_older: bool) -> None:
    first, second = contradicting(memory)
    (conflict,) = memory.conflicts()
    assert (conflict.other.id, conflict.note.id) == (first, second)
    assert (conflict.note.confidence, conflict.other.confidence) == (0.5, 0.5)
    assert (conflict.source, str(conflict.other_source)) == (None, "chat.txt:3")
    keep, over = (first, second) if keeps_older else (second, first)
    link = memory.resolve(keep, over, reason="I asked Ann")
    assert (link.source, link.target, link.type, link.reason) == (keep, over, LinkType.SUPERSEDES, "I asked Ann")
    assert memory.conflicts() == []
    question = "Where does Ben live?"
    assert [hit.note.id for hit in memory.search(question)][:2] == [keep, over]
    assert over not in {hit.note.id for hit in memory.search(question, current_only=True)}
    assert noted(memory, keep).confidence == 1.0
    memory.update(second, content="Ben lives in Turin, in a flat.")
    memory.flush()
    memory.evolve()
    assert memory.conflicts() == []
    assert noted(memory, keep).confidence == 1.0
    memory.resolve(over, keep)  # the other way round
    assert keep not in {hit.note.id for hit in memory.search(question, current_only=True)}
    assert memory.search(question, k=1)[0].note.id == over
    assert noted(memory, over).confidence == 1.0
    memory.unlink(over, keep, "SUPERSEDES")
    assert len(memory.conflicts()) == 1


def test_a_newer_note_that_is_wrong_was_never_valid(memory: Memory) -> None:
    right = memory.add("The harbour office opens at eight.", occurred_at="2024-01-01", wait=True)
    wrong = memory.add("The harbour office opens at noon.", occurred_at="2024-06-01", wait=True)
    if not has_link(memory, wrong, right, LinkType.SUPERSEDES):
        memory.link(wrong, right, "CONTRADICTS")
    memory.resolve(right, wrong)
    assert noted(memory, right).valid_to is None
    question = "When does the harbour office open?"
    for moment in ("2024-02-01", "2024-07-01", None):
        assert [hit.note.id for hit in memory.search(question, current_only=True, as_of=moment)] == [right]
    hits = {hit.note.id: hit.why for hit in memory.search(question, explain=True)}
    assert (hits[wrong].time, hits[wrong].superseded_by) == ("never valid", right)


def test_resolve_without_a_contradiction_raises(memory: Memory) -> None:
    first, second = contradicting(memory)
    other = memory.add("A note about cellos.", wait=True)
    with pytest.raises(InvalidInput, match="do not contradict each other"):
        memory.resolve(first, other)
    with pytest.raises(InvalidInput, match="to itself"):
        memory.resolve(first, first)
    with pytest.raises(NotFound):
        memory.resolve(first, "n_0")
    memory.archive(second)
    with pytest.raises(InvalidInput, match="archive"):
        memory.resolve(first, second)


# any history --------------------------------------------------------------------------------------------------------

TEXTS = (
    BERGEN, OSLO, "I live in Turku now, in a flat by the river.", "I live in Bergen, above the old bakery.",
    "The budget meeting is on Tuesday.", "The budget meeting is on Thursday.",
    "Kestrel the dog howls when Ann plays the cello.", "When Ann plays the cello, Kestrel the dog howls.",
)  # fmt: skip
STEPS = ("add", "update", "link", "unlink", "revert", "restore", "effects", "archive", "evolve", "flush")
LIKELY = (3, 4, 2, 3, 4, 2, 1, 1, 3, 2)
DECIDED = ("content", "context", "keywords", "tags", "importance", "confidence", "merged_into", "faded")
"""Fields that jobs set."""
Decision = LinkKey | tuple[str, str, str]
"""A link, or a note with a field and its value that a job set."""


class History:
    """Random changes of a memory by a person, with the decisions that the person has reverted and not restored.

    The expectation compares what is live before and after each change by the person.
    """

    def __init__(self, memory: Memory, seed: int) -> None:
        self.memory = memory
        self.random = random.Random(seed)
        self.ids: list[str] = []
        self.reverted: set[Decision] = set()
        self.steps: list[str] = []

    def run(self, steps: int) -> None:
        for _ in range(steps):
            (name,) = self.random.choices(STEPS, LIKELY)
            self.memory.flush()
            if len(self.ids) < 2 and name not in ("evolve", "flush"):
                name = "add"
            before = self.live()
            try:
                self.steps.append(getattr(self, name)())
            except InvalidInput as error:
                self.steps.append(f"refused: {error}")
            after = self.live()
            if name in ("unlink", "revert", "restore", "effects"):
                self.reverted = (self.reverted | (before - after)) - (after - before)
            else:
                self.reverted -= after - before
            self.memory.flush()
            self.check()

    def check(self) -> None:
        again = self.reverted & self.live()
        assert not again, f"live again: {again}, after {self.steps}"

    def live(self) -> set[Decision]:
        """Return all live decisions."""
        live: set[Decision] = {*self.links()}
        for id in self.ids:
            setters: dict[str, tuple[bool, str]] = {}
            for revision in self.memory.history(id):
                if revision.live:
                    by_job = isinstance(revision.cause.by, JobKind)
                    setters.update({name: (by_job, str(value)) for name, value in revision.change.items()})
            live |= {(id, name, value) for name, (by_job, value) in setters.items() if by_job and name in DECIDED}
        return live

    def links(self) -> set[LinkKey]:
        made = {link.key for id in self.ids for link in self.memory.links(id)}
        return {key for key in made if key.type not in (LinkType.MENTIONS, LinkType.DERIVED_FROM)}

    def note(self) -> str:
        return self.random.choice(self.ids)

    def add(self) -> str:
        when = f"2024-0{self.random.randint(1, 9)}-01"
        text = self.random.choice(TEXTS)
        when = "2024-05-01" if self.random.random() < 0.3 else when
        self.ids.append(self.memory.add(text, speaker="Ann", session=str(len(self.ids)), occurred_at=when))
        return f"add {self.ids[-1]} {when} {text}"

    def update(self) -> str:
        id, text = self.note(), self.random.choice(TEXTS)
        self.memory.update(id, content=text)
        return f"update {id} {text}"

    def link(self) -> str:
        source, target, kind = self.note(), self.note(), self.random.choice(["RELATES", "SUPERSEDES", "CONTRADICTS"])
        self.memory.link(source, target, kind)
        return f"link {source} {target} {kind}"

    def unlink(self) -> str:
        links = sorted(self.links())
        if not links:
            return "nothing to unlink"
        key = self.random.choice(links)
        self.memory.unlink(*key)
        assert key not in self.links()
        return f"unlink {key}"

    def revert(self) -> str:
        id = self.note()
        versions = self.memory.history(id)
        version = self.random.choice(versions[-4:]).version
        self.memory.revert(id, version)
        return f"revert {id} {version}"

    def restore(self) -> str:
        """Revert the last revert of a note."""
        for id in self.random.sample(self.ids, len(self.ids)):
            reverts = [r.version for r in self.memory.history(id) if r.undoes and r.live and r.cause.by == "user"]
            if reverts:
                self.memory.revert(id, reverts[-1] - 1)
                return f"restore {id} {reverts[-1] - 1}"
        return "nothing to restore"

    def effects(self) -> str:
        id = self.note()
        self.memory.revert_effects(id)
        return f"revert effects of {id}"

    def archive(self) -> str:
        id = self.note()
        if noted(self.memory, id).archived:
            self.memory.unarchive(id)
            return f"unarchive {id}"
        self.memory.archive(id)
        return f"archive {id}"

    def evolve(self) -> str:
        self.memory.evolve()
        return "evolve"

    def flush(self) -> str:
        self.memory.flush()
        return "flush"


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("backend", EVERY_STORE)
def test_no_history_brings_a_reverted_decision_back(
    backend: str, tmp_path_factory: pytest.TempPathFactory, soak_scale: Any
) -> None:
    """Random changes by a person, and jobs after each: what the person reverted is not live again."""
    for seed in range(soak_scale(1000 if backend == "embedded" else 50)):
        with Memory(BACKENDS[backend](tmp_path_factory.mktemp("reverted"))) as memory:
            history = History(memory, seed)
            history.run(14)
            assert memory.check() == [], history.steps
