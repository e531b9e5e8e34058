// A note's history
// All versions of a note: when and by whom each was written.
// $note = "n_"  id of the note, or its beginning
MATCH (note:Note {scope: $scope})
WHERE note.id STARTS WITH $note
WITH note ORDER BY note.version DESC, note.seq LIMIT 1
OPTIONAL MATCH (note)-[:BEGAN_AS|REVISED]->(state)
WITH note, coalesce(state, note) AS state
RETURN state.version AS version, state.recorded_at AS recorded_at, coalesce(state.by, 'add') AS by,
       coalesce(state.body, state.content) AS what, note.id AS id
ORDER BY version
