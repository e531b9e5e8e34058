// The use of notes by the logged searches, and by those with feedback.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})<-[:FOUND]-(x:Search)
WITH n.id AS id, CASE WHEN x.body CONTAINS '"used":[' THEN split(x.body, '"used":[')[1] END AS feedback
RETURN id, count(feedback) AS shown,
  sum(CASE WHEN feedback CONTAINS ('"' + id + '"') AND NOT feedback CONTAINS '"outcome":"failure"' THEN 1 ELSE 0 END) AS good,
  count(*) AS found
