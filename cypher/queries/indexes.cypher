// The names of all indexes, including those of constraints.
SHOW INDEXES YIELD name
RETURN name
