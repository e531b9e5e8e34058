// An index of changes by change count, with which a cached scope is updated. `indexed` is the change count up to which
// the vector index contains a scope's vectors.

CREATE INDEX zettel_index_change IF NOT EXISTS FOR (x:Index) ON (x.scope, x.changed);

MATCH (s:Scope) WHERE s.indexed IS NULL
SET s.indexed = s.changes;
