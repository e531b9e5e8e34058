// What is found by what changed since somebody last looked, so that a scope held in memory is kept in step.

CREATE INDEX zettel_index_change IF NOT EXISTS FOR (x:Index) ON (x.scope, x.changed);
