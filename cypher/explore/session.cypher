// A session
// Everything that was said in it, in order: each event, the note made of it, and what came next.
// $session = "session_1"  its name; the query "sessions" lists them
MATCH (event:Event {scope: $scope, session: $session})<-[from:FROM]-(note:Note)
OPTIONAL MATCH (event)-[next:NEXT]->(:Event)
RETURN event, from, note, next
ORDER BY event.occurred_at, event.seq, note.seq
