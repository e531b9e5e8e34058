// An index of the notes that expire; other notes lack the property.

CREATE INDEX zettel_note_expiry IF NOT EXISTS FOR (x:Note) ON (x.scope, x.expires_at);
