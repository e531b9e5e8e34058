"""Finds the entities of a scope: which names its notes contain, of which kind they are, and which are one entity.

Everything follows from the notes at each read, so nothing remains of a deleted note. Two rules merge names, both only
if they are sure. "My wife Ana", stated by a person, makes "my wife" a name of Ana, unless another name comes with it
too. "Ann" is "Ann Berg" if no other full name begins with "Ann" and both are named in one session. Decisions of people
and models come first, and a split overrules every merge.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Literal, NamedTuple

from zettel.core.authority import is_trusted
from zettel.core.entity_decisions import EntityDecision
from zettel.core.entity_notes import decided_names
from zettel.core.present import has_ended
from zettel.errors import InvalidInput, NotFound
from zettel.link.fact_changes import replaces
from zettel.model import (
    ROLES,
    Entity,
    EntityDetails,
    EntityFact,
    EntityKind,
    EntityNeighbor,
    Kind,
    NamesMerged,
    Note,
    Scope,
    TermUse,
    implied_role,
)
from zettel.text.asserted import asserted
from zettel.text.entities import (
    SPEAKER,
    context_weights,
    kind_of,
    may_be_entity,
    name_weights,
    person_phrases,
    relations_in,
)
from zettel.text.facts import Fact, facts, facts_are_read
from zettel.text.owners import Owner
from zettel.text.tokens import clean, phrase_key, tokenize

READ_TEXTS = 20
"""Texts in which the cues around a name are read: the first ones."""
SHARED_LETTERS = 3
"""First letters that a nickname and a name share: "Tom" and "Thomas" do not, "Dan" and "Daniel" do."""
NAMES_PER_NOTE = 60
"""A note with more names is a list, whose names are not neighbours."""
_KINDS = frozenset({"name", "speaker"})
"""The kinds of terms that are names."""


@dataclass(slots=True)
class _Name:
    """A name: its spellings, the notes and sessions that contain it, and the weights of its kinds."""

    spellings: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    weights: dict[EntityKind, float] = field(default_factory=dict)
    is_speaker: bool = False

    @property
    def text(self) -> str:
        return max(self.spellings, key=lambda text: (self.spellings[text], text))

    def weigh(self, weights: Mapping[EntityKind, float]) -> None:
        for kind, weight in weights.items():
            self.weights[kind] = self.weights.get(kind, 0.0) + weight


class _Merge(NamedTuple):
    keys: tuple[str, str]
    same: bool
    why: NamesMerged


class EntityIndex:
    """The entities of a scope. Call ``add`` with each note in order of arrival, then ``finish``."""

    def __init__(self) -> None:
        self._names: dict[str, _Name] = {}
        self._names_of: dict[str, tuple[str, ...]] = {}
        self._phrases: defaultdict[tuple[str, str], list[str]] = defaultdict(list)  # (person, phrase) to notes
        self._relations: defaultdict[tuple[str, str], dict[str, list[str]]] = defaultdict(dict)
        self._people: dict[str, str] = {}  # those who speak of themselves, by key
        self._groups: dict[str, str] = {}
        self._members: dict[str, list[str]] = {}
        self._merges: list[_Merge] = []
        self._applied: list[_Merge] = []  # those that took effect

    # building --------------------------------------------------------------------------------------------------------

    def add(self, note: Note, uses: Iterable[TermUse]) -> None:
        """Add a note with its terms."""
        if note.kind is Kind.INSIGHT or decided_names(note):
            return
        named = [use for use in uses if use.kind in _KINDS and may_be_entity(use.text)]
        text = clean(note.content)
        for use in named:
            name = self._names.setdefault(use.key, _Name())
            if not name.notes:
                name.weigh(name_weights(use.text))
            if use.kind == "speaker" and not name.is_speaker:
                name.is_speaker = True
                name.weigh({"person": SPEAKER})
            if len(name.notes) < READ_TEXTS:
                name.weigh(context_weights(text, use.text))
            name.spellings[use.text] += 1
            name.notes.append(note.id)
            name.sessions.add(note.session or note.id)
        self._names_of[note.id] = tuple(use.key for use in named)
        if facts_are_read(note) and is_trusted(note):
            self._add_relations(note, text)

    def _add_relations(self, note: Note, text: str) -> None:
        speaker = note.speaker if note.speaker and implied_role(note.speaker) is None else ""
        person = phrase_key(speaker)
        self._people[person] = speaker
        phrases = person_phrases(text)
        for phrase in phrases:
            self._phrases[person, phrase].append(note.id)
        if not phrases:
            return
        for sentence in asserted(note.content).sentences:
            for phrase, name in relations_in(sentence):
                if key := self._known_name(name):
                    self._relations[person, phrase].setdefault(key, []).append(note.id)

    def _known_name(self, text: str) -> str | None:
        """Return the key of a name, without words after it that also have a capital."""
        words = text.split()
        keys = (phrase_key(" ".join(words[:end])) for end in range(len(words), 0, -1))
        return next((key for key in keys if key in self._names), None)

    def finish(self, decisions: Sequence[EntityDecision]) -> None:
        """Merge names, the decisions first, from the latest on."""
        alone = len(self._people) == 1
        for (person, phrase), notes in self._phrases.items():
            text = self._phrase(person, phrase, alone)
            name = self._names.setdefault(phrase_key(text), _Name())
            name.spellings[text] += 1
            name.notes = list(dict.fromkeys([*name.notes, *notes]))
        merges = [
            _Merge(decision.keys, decision.same, _why(decision))
            for by in ("user", "reflect")
            for decision in sorted(decisions, key=lambda decision: -decision.seq)
            if decision.by == by
        ]
        for decision in decisions:
            for text in decision.names:
                self._names.setdefault(phrase_key(text), _Name()).spellings[text] += 1
        self._merge([*merges, *self._by_first_name()])
        self._merge(self._by_relation(alone))

    def _by_first_name(self) -> list[_Merge]:
        """Return merges of first names with the only full name that begins with them."""
        full: defaultdict[str, list[str]] = defaultdict(list)
        for key, name in self._names.items():
            first, _, rest = key.partition(" ")
            if rest and kind_of(name.weights) == "person":
                full[first].append(key)
        merges = []
        for first, keys in full.items():
            if first not in self._names or len(keys) > 1 or len(first) < 2:
                continue
            short, long = self._names[first], self._names[keys[0]]
            both_speak = short.is_speaker and long.is_speaker
            if kind_of(short.weights) == "person" and not both_speak and short.sessions & long.sessions:
                reason = f"no other full name begins with {short.text}, and one session names both"
                sources = (short.notes[0], long.notes[0])
                why = NamesMerged(names=(short.text, long.text), by="rule", reason=reason, sources=sources)
                merges.append(_Merge((first, keys[0]), True, why))
        return merges

    def _by_relation(self, alone: bool) -> list[_Merge]:
        """Return merges of phrases such as "my wife" with the only name that comes with them."""
        merges = []
        for (person, phrase), names in self._relations.items():
            people = [key for key in names if kind_of(self._names[key].weights) == "person"]  # "My wife is American."
            if people and len({self._groups[key] for key in people}) == 1:
                key = people[0]
                text = self._phrase(person, phrase, alone)
                reason = f'{self._people[person] or "the user"} wrote "{phrase} {self._names[key].text}"'
                sources = tuple(dict.fromkeys(note for name in people for note in names[name]))
                why = NamesMerged(names=(text, self._names[key].text), by="rule", reason=reason, sources=sources)
                merges.append(_Merge((phrase_key(text), key), True, why))
        return merges

    def _phrase(self, person: str, phrase: str, alone: bool) -> str:
        """Return "my wife" as others write it: "Bob's wife", unless only one person speaks of himself or herself."""
        return phrase if alone or not person else f"{self._people[person]}'s {phrase.partition(' ')[2]}"

    def _merge(self, merges: Iterable[_Merge]) -> None:
        """Apply merges and splits in order; a later one never overrules an earlier one."""
        self._merges += merges
        self._applied = []
        parent = {key: key for key in self._names}
        split: list[tuple[str, str]] = []

        def root(key: str) -> str:
            while parent[key] != key:
                key = parent[key]
            return key

        for merge in self._merges:
            (one, other), same, _ = merge
            first, second = root(one), root(other)
            if first == second:
                continue
            if not same:
                split.append((one, other))
            elif not any({root(a), root(b)} == {first, second} for a, b in split):
                parent[second] = first
                self._applied.append(merge)
        self._groups = {key: root(key) for key in self._names}
        self._members = {}
        for key, group in self._groups.items():
            self._members.setdefault(group, []).append(key)

    def doubtful(self, most: int) -> list[tuple[str, str]]:
        """Return pairs of keys that may be one entity and that nobody decided, those with most notes first.

        Names share a word or a beginning and are of one kind; a phrase and a person share a session.
        """
        decided = {frozenset(merge.keys) for merge in self._merges}
        kinds = {key: kind_of(name.weights) for key, name in self._names.items() if name.notes}
        by_word: defaultdict[str, list[str]] = defaultdict(list)
        for key, kind in kinds.items():
            if kind in ("person", "organisation"):
                for word in {*key.split(), key[:SHARED_LETTERS]}:
                    by_word[word].append(key)
        pairs = {
            (one, other)
            for keys in by_word.values()
            for place, one in enumerate(sorted(keys))
            for other in sorted(keys)[place + 1 :]
            if kinds[one] == kinds[other] and not (self._names[one].is_speaker and self._names[other].is_speaker)
        }
        alone = len(self._people) == 1
        for person, phrase in self._phrases:
            key = phrase_key(self._phrase(person, phrase, alone))
            near = {other for id in self._names[key].notes for other in self._names_of.get(id, ())}
            pairs.update((other, key) for other in near - {key, person} if kinds.get(other) == "person")
        open_pairs = [
            pair for pair in pairs if self._groups[pair[0]] != self._groups[pair[1]] and frozenset(pair) not in decided
        ]
        return sorted(open_pairs, key=lambda pair: (-min(len(self._names[key].notes) for key in pair), pair))[:most]

    def name_of(self, key: str) -> tuple[str, Sequence[str]]:
        """Return the usual spelling of a name, and the ids of the notes that contain it."""
        return self._names[key].text, self._names[key].notes

    # reading ---------------------------------------------------------------------------------------------------------

    def entities(self) -> list[Entity]:
        """Return the entities of a known kind, most named first."""
        entities = [self._entity(group) for group in self._members]
        known = [entity for entity in entities if entity.kind is not None and entity.notes]
        return sorted(known, key=lambda entity: (-entity.notes, phrase_key(entity.name)))

    def group_of(self, name: str, scope: Scope) -> str:
        """Return the group of a name. A first name means the only full name that begins with it.

        Raises ``NotFound``, and ``InvalidInput`` for a first name of several people.
        """
        key = phrase_key(name)
        if key in self._groups and self.notes_of(self._groups[key]):
            return self._groups[key]
        full = [other for other in self._names if key and other.startswith(f"{key} ") and self._names[other].notes]
        groups = sorted({self._groups[other] for other in full if self._kind(self._groups[other]) == "person"})
        if len(groups) > 1:
            names = ", ".join(sorted(self._entity(group).name for group in groups))
            raise InvalidInput(f"{name!r} may be {names}: write one of these names")
        if not groups:
            hint = "`entities` lists the names"
            if key in ROLES:
                hint = "a role has no entity; `context(…, profile=True)` has the statements of users about themselves"
            raise NotFound(f"the names of {scope}", [name], hint)
        return groups[0]

    def notes_of(self, group: str) -> list[str]:
        """Return the ids of the notes that name an entity."""
        ids = {id for key in self._members[group] for id in self._names[key].notes}
        return [id for id in self._names_of if id in ids] if len(self._members[group]) > 1 else self._names[group].notes

    def details(self, group: str, notes: Sequence[Note], limit: int) -> EntityDetails:
        """Return an entity with at most ``limit`` facts, dated notes and neighbours; ``notes`` are those naming it."""
        entity = self._entity(group)
        dated = sorted((note for note in notes if note.occurred_at), key=_time)
        return EntityDetails(
            **dict(entity),
            merges=tuple(merge.why for merge in self._applied if self._groups[merge.keys[0]] == group),
            facts=tuple(self._facts(group, notes)[-limit:]),
            timeline=tuple(dated[-limit:]),
            neighbors=tuple(self._neighbors(group)[:limit]),
        )

    def _entity(self, group: str) -> Entity:
        keys = sorted(self._members[group], key=lambda key: (self._is_phrase(key), -len(self._names[key].notes), key))
        name, *aliases = (self._names[key].text for key in keys)
        return Entity(name=name, kind=self._kind(group), aliases=tuple(aliases), notes=len(self.notes_of(group)))

    def _kind(self, group: str) -> EntityKind | None:
        keys = self._members[group]
        weights: dict[EntityKind, float] = {}
        for key in keys:
            for kind, weight in self._names[key].weights.items():
                weights[kind] = weights.get(kind, 0.0) + weight
        if not any(self._is_phrase(key) for key in keys):
            return kind_of(weights)
        return "person" if len(keys) > 1 else None  # a relation alone is not a name

    def _is_phrase(self, key: str) -> bool:
        """Return whether a key is that of a phrase such as "my wife"."""
        return not self._names[key].sessions

    def _neighbors(self, group: str) -> list[EntityNeighbor]:
        shared: defaultdict[str, list[str]] = defaultdict(list)
        for id in self.notes_of(group):
            keys = self._names_of.get(id, ())
            if len(keys) <= NAMES_PER_NOTE:
                for other in dict.fromkeys(self._groups[key] for key in keys):
                    if other != group:
                        shared[other].append(id)
        found = []
        for other, notes in shared.items():
            entity = self._entity(other)
            if entity.kind is not None:
                found.append(EntityNeighbor(name=entity.name, kind=entity.kind, count=len(notes), notes=tuple(notes)))
        return sorted(found, key=lambda neighbor: (-neighbor.count, phrase_key(neighbor.name)))

    def _facts(self, group: str, notes: Sequence[Note]) -> list[EntityFact]:
        """Return the facts about an entity, oldest first; replaced ones are not current."""
        names = [frozenset(key.split()) for key in self._members[group]]
        keys = set(self._members[group])
        relations = {
            (person, frozenset(tokenize(phrase.partition(" ")[2])))
            for person, phrase in self._phrases
            if self._groups[phrase_key(self._phrase(person, phrase, len(self._people) == 1))] == group
        }

        def own(fact: Fact, note: Note) -> Fact | None:
            """Return a fact with the entity as its owner, so that facts about all its names are compared."""
            person, path = fact.owner.person, frozenset(fact.owner.path)
            if path:
                speaker = "" if person == {"user"} else phrase_key(note.speaker or "")
                is_own = (speaker, path) in relations
            else:
                is_own = bool(person) and any(person <= name for name in names)
            if is_own:
                return fact._replace(owner=Owner(frozenset({group})))
            return fact if phrase_key(fact.value.text) in keys else None

        stated = [
            (about, note)
            for note in sorted(notes, key=_time)
            for fact in facts(note)
            if (about := own(fact, note)) is not None
        ]
        found: list[tuple[datetime, EntityFact]] = []
        for place, (fact, note) in enumerate(stated):
            later = stated[place + 1 :]
            is_replaced = any(
                new.attribute == fact.attribute and new.thing == fact.thing and replaces(new, newer, fact, note)
                for new, newer in later
            )
            found.append((_since(note), EntityFact(
                note=note.id, attribute=fact.attribute, value=fact.value.text, text=fact.text,
                valid_from=note.valid_from or note.occurred_at, valid_to=note.valid_to,
                current=not is_replaced and fact.sense != "ends" and not has_ended(note),
            )))  # fmt: skip
        found += [
            (_since(note), _added(note))
            for note in notes
            if phrase_key(str(note.metadata.get("subject", ""))) in keys
            and note.kind is Kind.SEMANTIC
            and "attribute" in note.metadata
        ]
        return [fact for _, fact in sorted(found, key=itemgetter(0))]


def _added(note: Note) -> EntityFact:
    """Return a fact that a caller extracted, see ``Memory.add_fact``."""
    return EntityFact(
        note=note.id, attribute=str(note.metadata["attribute"]), value=str(note.metadata.get("value", "")),
        text=note.content, valid_from=note.valid_from, valid_to=note.valid_to, current=not has_ended(note),
    )  # fmt: skip


def _why(decision: EntityDecision) -> NamesMerged:
    by: Literal["user", "reflect"] = "reflect" if decision.by == "reflect" else "user"
    return NamesMerged(
        names=decision.names, by=by, reason=decision.reason, note=decision.note, sources=decision.sources
    )


def _since(note: Note) -> datetime:
    return note.valid_from or note.occurred_at or note.recorded_at


def _time(note: Note) -> tuple[float, int]:
    return (note.occurred_at.timestamp() if note.occurred_at else 0.0), note.seq
