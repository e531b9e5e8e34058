-- The time at which a note expires, and the retention of a scope (JSON).
ALTER TABLE notes ADD COLUMN expires_at INTEGER;
CREATE INDEX notes_expiring ON notes (scope, archived, expires_at, seq) WHERE expires_at IS NOT NULL;
ALTER TABLE scopes ADD COLUMN retention TEXT;
