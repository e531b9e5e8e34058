-- The writer of an event or of a change; NULL if unknown.
ALTER TABLE events ADD COLUMN principal TEXT;
ALTER TABLE revisions ADD COLUMN principal TEXT;
CREATE INDEX events_principal ON events (scope, principal) WHERE principal IS NOT NULL;
CREATE INDEX revisions_principal ON revisions (scope, principal) WHERE principal IS NOT NULL;
