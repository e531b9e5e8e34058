-- Inverted lists of a large scope's vectors (see ivf_lists.py): the nearest centroid of each vector. `centroids` are
-- little-endian float32; the last two rows are the minimum and maximum of all vectors. `assigned` are pairs of
-- a note's number (int64) and its list (uint16). `epoch` counts trainings.
CREATE TABLE lists (
    scope     INTEGER NOT NULL,
    space     INTEGER NOT NULL,
    epoch     INTEGER NOT NULL,
    trained   INTEGER NOT NULL,
    centroids BLOB NOT NULL,
    assigned  BLOB NOT NULL,
    PRIMARY KEY (scope, space)
);
