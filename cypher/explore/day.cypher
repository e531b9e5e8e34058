// A day
// All events of a day, in order, with their notes.
// $day = "2025-08-02"  the day
MATCH (note:Note {scope: $scope})-[from:FROM]->(event:Event {scope: $scope})
WHERE datetime($day) <= event.occurred_at < datetime($day) + duration('P1D')
RETURN event, from, note
ORDER BY event.occurred_at, event.seq, note.seq
