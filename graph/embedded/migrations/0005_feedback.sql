-- Searches with hits, for feedback. `body` contains the hits and the feedback.
CREATE TABLE searches (
    number   INTEGER PRIMARY KEY,
    scope    INTEGER NOT NULL,
    id       TEXT NOT NULL,
    asked_at INTEGER NOT NULL,
    question TEXT NOT NULL,
    body     TEXT NOT NULL
);
CREATE UNIQUE INDEX searches_by_id ON searches (scope, id);
CREATE INDEX searches_by_time ON searches (scope, asked_at, id);

-- The hits of searches: deleting any of them deletes the search.
CREATE TABLE search_notes (
    note   INTEGER NOT NULL,
    search INTEGER NOT NULL,
    PRIMARY KEY (note, search)
) WITHOUT ROWID;
CREATE INDEX search_notes_by_search ON search_notes (search);

-- Feedback counts of notes that were useful.
CREATE TABLE note_uses (
    note      INTEGER PRIMARY KEY,
    scope     INTEGER NOT NULL,
    since     INTEGER NOT NULL,
    times     INTEGER NOT NULL,
    successes INTEGER NOT NULL,
    failures  INTEGER NOT NULL
);
CREATE INDEX note_uses_by_scope ON note_uses (scope);
