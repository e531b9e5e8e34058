// A note
// One note, what it rests on, what it is filed under, and the notes beside it.
// $note = "n_"  its id, or how that begins
MATCH (note:Note {scope: $scope})
WHERE note.id STARTS WITH $note
WITH note ORDER BY note.seq LIMIT 1
OPTIONAL MATCH (note)-[from:FROM]->(event:Event)
OPTIONAL MATCH (note)-[has:HAS_TERM]->(term:Term)
OPTIONAL MATCH (note)-[link:RELATES|MENTIONS|SUPERSEDES|CONTRADICTS|DERIVED_FROM]-(other:Note)
RETURN note, from, event, has, term, link, other
