-- What a large scope's columns hold, so that whoever opens the store need not read it note by note (see snapshots.py).
-- `token` tells one writing from the next; `changed` is the scope's count that the columns stood at. Piece 0 says what
-- the other pieces are and is written last: without it they are the rest of a writing that was broken off.
CREATE TABLE snapshots (
    scope   INTEGER NOT NULL,
    space   INTEGER NOT NULL,
    token   INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    piece   INTEGER NOT NULL,
    data    BLOB NOT NULL,
    PRIMARY KEY (scope, space, token, piece)
);
