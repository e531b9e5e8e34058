-- The notes of each word and term, in stretches of the scope's notes (see words.py). They are moved from the postings,
-- which a large scope scattered over the file. The remaining postings, values of filters (count 0) and title keys (-1),
-- get a new name, so that an older process with an open file fails instead of writing.
CREATE TABLE words (
    scope   INTEGER NOT NULL,
    stretch INTEGER NOT NULL,
    key     INTEGER NOT NULL,
    note    INTEGER NOT NULL,
    PRIMARY KEY (scope, stretch, key, note)
) WITHOUT ROWID;
INSERT INTO words (scope, stretch, key, note)
    SELECT p.scope, n.seq >> 14, p.key, p.note FROM postings p JOIN notes n ON n.number = p.note WHERE p.count > 0
    ORDER BY 1, 2, 3, 4;
DELETE FROM postings WHERE count > 0;
ALTER TABLE postings RENAME TO facets;
