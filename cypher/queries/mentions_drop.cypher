// Delete the derived links that start or end at notes.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})-[l:MENTIONS]-()
WHERE NOT l.decided
WITH DISTINCT l, startNode(l) AS source
DELETE l
WITH DISTINCT source
MATCH (source)-[:FOUND_BY]->(i)
SET i.changed = $changes
