// Changes of this week
// Notes that were created or changed in the last seven days, latest first.
// $days = 7  number of days
// $most = 200  maximum number of changes
MATCH (note:Note {scope: $scope})
OPTIONAL MATCH (note)-[:BEGAN_AS|REVISED]->(state)
WITH note, coalesce(state, note) AS state
WHERE state.recorded_at >= datetime() - duration({days: $days})
RETURN state.recorded_at AS recorded_at, note.caption AS note, state.version AS version,
       coalesce(state.by, 'add') AS by, note.id AS id
ORDER BY recorded_at DESC, state.seq DESC LIMIT $most
