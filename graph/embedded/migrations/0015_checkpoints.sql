-- A shorter history of a note with many versions: the few revisions that still decide something, up to a version.
-- Deleting a revision of the note deletes it.
CREATE TABLE checkpoints (
    note INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);
