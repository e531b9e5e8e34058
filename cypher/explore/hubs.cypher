// Hubs
// The notes with the most links, each with the notes around it.
// $most = 8  how many of them
MATCH (hub:Note {scope: $scope})-[:RELATES|MENTIONS|SUPERSEDES|CONTRADICTS|DERIVED_FROM]-(other:Note)
WHERE hub.archived IS NULL AND other.archived IS NULL
WITH hub, count(DISTINCT other) AS links ORDER BY links DESC, hub.seq LIMIT $most
MATCH (hub)-[link:RELATES|MENTIONS|SUPERSEDES|CONTRADICTS|DERIVED_FROM]-(other:Note)
WHERE other.archived IS NULL
RETURN hub, link, other
