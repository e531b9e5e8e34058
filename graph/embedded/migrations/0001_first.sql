-- The first layout. Numbers (INTEGER) identify rows of this store and are never reused; ids (TEXT) are public. Times are
-- microseconds since 1970 UTC; TIME_MIN and TIME_MAX are open ends.

-- `secret` is the key of all hashes of the scope. `changed` counts its writes. Removals up to the count `floor` are
-- dropped: a process with an older count reads the scope again.
CREATE TABLE scopes (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    key         TEXT NOT NULL UNIQUE,
    name        TEXT NOT NULL,
    secret      BLOB NOT NULL,
    seq         INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    changed     INTEGER NOT NULL,
    floor       INTEGER NOT NULL
);

CREATE TABLE events (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    scope       INTEGER NOT NULL,
    id          TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    identity    TEXT NOT NULL,
    session     TEXT,
    occurred_at INTEGER NOT NULL,
    source      TEXT,
    body        TEXT NOT NULL
);
CREATE UNIQUE INDEX events_by_id ON events (scope, id);
CREATE INDEX events_by_identity ON events (scope, identity);
CREATE INDEX events_by_seq ON events (scope, seq);
CREATE INDEX events_by_time ON events (scope, occurred_at);

-- Keyed hashes of deleted identities, so that an import does not restore them.
CREATE TABLE tombstones (
    scope    INTEGER NOT NULL,
    identity TEXT NOT NULL,
    PRIMARY KEY (scope, identity)
) WITHOUT ROWID;

-- Columns that select candidates. `entries` and `terms` list the postings of a note (see keys.py); `changed` is the
-- scope's count when the note, its vector or its links last changed.
CREATE TABLE notes (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    scope       INTEGER NOT NULL,
    id          TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    event       INTEGER NOT NULL,
    event_seq   INTEGER NOT NULL,
    part        INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    role        TEXT,
    session     TEXT,
    occurred_at INTEGER NOT NULL,
    valid_from  INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    length      INTEGER NOT NULL,
    asks        INTEGER NOT NULL,
    archived    INTEGER NOT NULL,
    titled      INTEGER NOT NULL,
    changed     INTEGER NOT NULL,
    entries     BLOB NOT NULL,
    terms       BLOB NOT NULL
);
CREATE UNIQUE INDEX notes_by_id ON notes (scope, id);
CREATE INDEX notes_by_seq ON notes (scope, seq) WHERE NOT archived;
CREATE INDEX notes_by_change ON notes (scope, changed);
CREATE INDEX notes_titled ON notes (scope) WHERE titled;

-- The current version of a note, and version 1 once the two differ.
CREATE TABLE texts (
    note  INTEGER PRIMARY KEY,
    body  TEXT NOT NULL,
    base  TEXT,
    terms TEXT NOT NULL
);

-- The events that notes are based on, in any of their versions.
CREATE TABLE note_events (
    event INTEGER NOT NULL,
    note  INTEGER NOT NULL,
    PRIMARY KEY (event, note)
) WITHOUT ROWID;
CREATE INDEX note_events_by_note ON note_events (note);

-- Numbers of deleted notes and events, for processes that cache the scope. The other number is 0.
CREATE TABLE removed (
    scope   INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    note    INTEGER NOT NULL,
    event   INTEGER NOT NULL,
    PRIMARY KEY (scope, changed, note, event)
) WITHOUT ROWID;

-- Index entries of a note: words (count > 0), values of filters (0), title keys (-1), terms (their count).
CREATE TABLE postings (
    scope INTEGER NOT NULL,
    key   INTEGER NOT NULL,
    note  INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (scope, key, note)
) WITHOUT ROWID;

-- The normal form of a term by its keyed hash, as long as a note contains the term.
CREATE TABLE terms (
    scope INTEGER NOT NULL,
    key   INTEGER NOT NULL,
    name  TEXT NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;

CREATE TABLE spaces (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT NOT NULL,
    dim         INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    recipe      TEXT NOT NULL,
    active      INTEGER NOT NULL
);

-- Little-endian float32.
CREATE TABLE vectors (
    number INTEGER PRIMARY KEY,
    note   INTEGER NOT NULL,
    space  INTEGER NOT NULL,
    vector BLOB NOT NULL
);
CREATE UNIQUE INDEX vectors_by_note ON vectors (note, space);

-- `owner` is the note whose revisions decided the link, or 0 for MENTIONS, which are derived from the texts.
CREATE TABLE links (
    source      INTEGER NOT NULL,
    target      INTEGER NOT NULL,
    type        TEXT NOT NULL,
    owner       INTEGER NOT NULL,
    weight      REAL NOT NULL,
    reason      TEXT NOT NULL,
    recorded_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX links_by_source ON links (source, type, target, owner);
CREATE INDEX links_by_target ON links (target);
CREATE INDEX links_by_owner ON links (owner) WHERE owner != 0;

CREATE TABLE revisions (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    scope       INTEGER NOT NULL,
    note        INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    body        TEXT NOT NULL
);
CREATE UNIQUE INDEX revisions_by_note ON revisions (note, version);
CREATE INDEX revisions_by_time ON revisions (scope, recorded_at);

-- The notes that a revision cites: its inputs, its cause, the ends of its links.
CREATE TABLE citations (
    cited    TEXT NOT NULL,
    scope    INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (scope, cited, revision)
) WITHOUT ROWID;
CREATE INDEX citations_by_revision ON citations (revision);

-- Durable work. `lease_until` is 0 while no worker has claimed the job.
CREATE TABLE jobs (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    scope       INTEGER NOT NULL,
    id          TEXT NOT NULL,
    kind        TEXT NOT NULL,
    note        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    priority    INTEGER NOT NULL,
    run_at      INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    state       TEXT NOT NULL,
    token       TEXT,
    lease_until INTEGER NOT NULL,
    error       TEXT
);
CREATE UNIQUE INDEX jobs_by_id ON jobs (id);
CREATE UNIQUE INDEX jobs_once ON jobs (scope, kind, note, version);
CREATE INDEX jobs_due ON jobs (state, priority DESC, run_at);
