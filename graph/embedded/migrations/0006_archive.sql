-- Archived notes, so that a search of the archive reads no others.
CREATE INDEX notes_archived ON notes (scope, seq) WHERE archived;
