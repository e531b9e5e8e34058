// A session
// All events of a session, in order, with their notes and the next event.
// $session = "session_1"  name of the session; the query "sessions" lists them
MATCH (event:Event {scope: $scope, session: $session})<-[from:FROM]-(note:Note)
OPTIONAL MATCH (event)-[next:NEXT]->(:Event)
RETURN event, from, note, next
ORDER BY event.occurred_at, event.seq, note.seq
