// Overview
// The strongest links of a memory.
// $most = 120  maximum number of links
MATCH (from:Note {scope: $scope})-[link:RELATES|MENTIONS|SUPERSEDES|UPDATES|CONTRADICTS|DERIVED_FROM]->(to:Note {scope: $scope})
WHERE from.archived IS NULL AND to.archived IS NULL
WITH from, link, to ORDER BY link.weight DESC LIMIT $most
RETURN from, link, to
