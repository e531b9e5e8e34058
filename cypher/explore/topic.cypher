// A topic
// The notes about one topic, and their links.
// $topic = "mustard"  name of the topic, in lower case, or its beginning
// $most = 60  maximum number of notes
MATCH (term:Term {scope: $scope})<-[has:HAS_TERM]-(note:Note)
WHERE term.name STARTS WITH $topic AND note.archived IS NULL
WITH term, has, note ORDER BY note.occurred_at LIMIT $most
OPTIONAL MATCH (note)-[link:RELATES|MENTIONS|SUPERSEDES|UPDATES|CONTRADICTS|DERIVED_FROM]->(other:Note)
RETURN term, has, note, link, other
