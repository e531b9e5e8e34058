// A topic
// The notes about one thing, and how they are linked.
// $topic = "mustard"  what it is called, in small letters, or how that begins
// $most = 60  how many notes
MATCH (term:Term {scope: $scope})<-[has:HAS_TERM]-(note:Note)
WHERE term.name STARTS WITH $topic AND note.archived IS NULL
WITH term, has, note ORDER BY note.occurred_at LIMIT $most
OPTIONAL MATCH (note)-[link:RELATES|MENTIONS|SUPERSEDES|CONTRADICTS|DERIVED_FROM]->(other:Note)
RETURN term, has, note, link, other
