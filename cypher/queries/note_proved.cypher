// How notes proved by the searches of which something was told.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})<-[:FOUND]-(x:Search)
WHERE x.body CONTAINS '"used":['
WITH n.id AS id, split(x.body, '"used":[')[1] AS told
RETURN id, count(*) AS shown,
  sum(CASE WHEN told CONTAINS ('"' + id + '"') AND NOT told CONTAINS '"outcome":"failure"' THEN 1 ELSE 0 END) AS good
