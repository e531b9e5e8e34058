// A day
// Everything that happened on it, in order, with the notes that were made of it.
// $day = "2025-08-02"  the day
MATCH (note:Note {scope: $scope})-[from:FROM]->(event:Event {scope: $scope})
WHERE datetime($day) <= event.occurred_at < datetime($day) + duration('P1D')
RETURN event, from, note
ORDER BY event.occurred_at, event.seq, note.seq
