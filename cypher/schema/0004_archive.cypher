// An index of archived notes; other notes lack the property.

CREATE INDEX zettel_note_archived IF NOT EXISTS FOR (x:Note) ON (x.scope, x.archived);
