// What is found by what changed since somebody last looked, so that a scope held in memory is kept in step; and up to which
// count of its changes the vectors of a scope are in the vector index.

CREATE INDEX zettel_index_change IF NOT EXISTS FOR (x:Index) ON (x.scope, x.changed);

MATCH (s:Scope) WHERE s.indexed IS NULL
SET s.indexed = s.changes;
