-- Which notes hold each word and Term, a stretch of the scope's notes at a time (see words.py). They were among the
-- postings before, and of a large scope written all over the file. What is left of these, what filters ask for (count 0)
-- and title keys (-1), has a new name: a process of an older version that has the file open must fail and not write on.
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
