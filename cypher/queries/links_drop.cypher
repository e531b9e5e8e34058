// Delete the links that notes decided, in either direction.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})-[l:{{links}}]-()
WHERE l.decided AND coalesce(l.owner, startNode(l).id) = id
WITH DISTINCT l, startNode(l) AS source
DELETE l
WITH DISTINCT source
MATCH (source)-[:FOUND_BY]->(i)
SET i.changed = $changes
