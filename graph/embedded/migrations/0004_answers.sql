-- Cached answers of language models. `key` is a keyed hash of the prompt.
CREATE TABLE answers (
    number INTEGER PRIMARY KEY,
    scope  INTEGER NOT NULL,
    key    TEXT NOT NULL,
    text   TEXT NOT NULL
);
CREATE UNIQUE INDEX answers_by_key ON answers (scope, key);

-- The notes whose text the prompt contained: deleting any of them deletes the answer.
CREATE TABLE answer_notes (
    note   INTEGER NOT NULL,
    answer INTEGER NOT NULL,
    PRIMARY KEY (note, answer)
) WITHOUT ROWID;
CREATE INDEX answer_notes_by_answer ON answer_notes (answer);

-- Use and cost of language models. `day` is YYYY-MM-DD in UTC.
CREATE TABLE model_use (
    scope             INTEGER NOT NULL,
    day               TEXT NOT NULL,
    model             TEXT NOT NULL,
    calls             INTEGER NOT NULL,
    hits              INTEGER NOT NULL,
    prompt_tokens     INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    usd               REAL NOT NULL,
    PRIMARY KEY (scope, day, model)
) WITHOUT ROWID;
CREATE INDEX model_use_by_day ON model_use (day);
