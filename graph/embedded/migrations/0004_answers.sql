-- What language models answered, so that the same is not paid for twice. `key` is a keyed hash of what was asked.
CREATE TABLE answers (
    number INTEGER PRIMARY KEY,
    scope  INTEGER NOT NULL,
    key    TEXT NOT NULL,
    text   TEXT NOT NULL
);
CREATE UNIQUE INDEX answers_by_key ON answers (scope, key);

-- Which notes' text stood in the question: with any of them the answer goes.
CREATE TABLE answer_notes (
    note   INTEGER NOT NULL,
    answer INTEGER NOT NULL,
    PRIMARY KEY (note, answer)
) WITHOUT ROWID;
CREATE INDEX answer_notes_by_answer ON answer_notes (answer);

-- What language models have cost. `day` is YYYY-MM-DD in UTC.
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
