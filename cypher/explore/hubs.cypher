// Hubs
// The notes with the most links, each with its neighbours.
// $most = 8  maximum number of hubs
MATCH (hub:Note {scope: $scope})-[:RELATES|MENTIONS|SUPERSEDES|UPDATES|CONTRADICTS|DERIVED_FROM]-(other:Note)
WHERE hub.archived IS NULL AND other.archived IS NULL
WITH hub, count(DISTINCT other) AS links ORDER BY links DESC, hub.seq LIMIT $most
MATCH (hub)-[link:RELATES|MENTIONS|SUPERSEDES|UPDATES|CONTRADICTS|DERIVED_FROM]-(other:Note)
WHERE other.archived IS NULL
RETURN hub, link, other
