// What was put away, to be looked through without reading all that was not: other notes have no such property.

CREATE INDEX zettel_note_archived IF NOT EXISTS FOR (x:Note) ON (x.scope, x.archived);
