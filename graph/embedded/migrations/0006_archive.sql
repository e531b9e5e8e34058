-- What was put away, to be looked through without reading all that was not.
CREATE INDEX notes_archived ON notes (scope, seq) WHERE archived;
