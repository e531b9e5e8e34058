// The names of all indexes, those of constraints among them.
SHOW INDEXES YIELD name
RETURN name
