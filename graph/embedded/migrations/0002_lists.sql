-- Inverted lists of a large scope's vectors (see lists.py): which centroid each vector is nearest to. `centroids` are
-- little-endian float32, the least and the greatest numbers of all vectors in the two last rows; `assigned` are pairs of
-- a note's number (int64) and its list (uint16). `epoch` tells one training from the next.
CREATE TABLE lists (
    scope     INTEGER NOT NULL,
    space     INTEGER NOT NULL,
    epoch     INTEGER NOT NULL,
    trained   INTEGER NOT NULL,
    centroids BLOB NOT NULL,
    assigned  BLOB NOT NULL,
    PRIMARY KEY (scope, space)
);
