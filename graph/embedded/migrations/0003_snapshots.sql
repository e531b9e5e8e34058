-- The columns of a large scope, so that a process need not read it note by note (see snapshots.py). `token` identifies
-- a snapshot; `changed` is the scope's count at that time. Piece 0 describes the other pieces and is written last:
-- without it they are an interrupted snapshot.
CREATE TABLE snapshots (
    scope   INTEGER NOT NULL,
    space   INTEGER NOT NULL,
    token   INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    piece   INTEGER NOT NULL,
    data    BLOB NOT NULL,
    PRIMARY KEY (scope, space, token, piece)
);
