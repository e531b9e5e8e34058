// The usefulness of notes by the logged searches with feedback.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})<-[:FOUND]-(x:Search)
WHERE x.body CONTAINS '"used":['
WITH n.id AS id, split(x.body, '"used":[')[1] AS feedback
RETURN id, count(*) AS shown,
  sum(CASE WHEN feedback CONTAINS ('"' + id + '"') AND NOT feedback CONTAINS '"outcome":"failure"' THEN 1 ELSE 0 END) AS good
