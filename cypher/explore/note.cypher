// A note
// One note with its events, terms and linked notes.
// $note = "n_"  id of the note, or its beginning
MATCH (note:Note {scope: $scope})
WHERE note.id STARTS WITH $note
WITH note ORDER BY note.seq LIMIT 1
OPTIONAL MATCH (note)-[from:FROM]->(event:Event)
OPTIONAL MATCH (note)-[has:HAS_TERM]->(term:Term)
OPTIONAL MATCH (note)-[link:RELATES|MENTIONS|SUPERSEDES|UPDATES|CONTRADICTS|DERIVED_FROM]-(other:Note)
RETURN note, from, event, has, term, link, other
