// Put new events of sessions into the chain of NEXT.
UNWIND $ids AS id
MATCH (e:Event {scope: $scope, id: id})
CALL (e) {
  MATCH (before:Event)
  WHERE before.place > left(e.place, 48) AND before.place < e.place
  WITH before ORDER BY before.place DESC LIMIT 1
  RETURN collect(before) AS earlier
}
CALL (e) {
  MATCH (after:Event)
  WHERE after.place > e.place AND after.place < left(e.place, 48) + '~'
  WITH after ORDER BY after.place LIMIT 1
  RETURN collect(after) AS later
}
WITH e, earlier[0] AS before, later[0] AS after
OPTIONAL MATCH (before)-[out:NEXT]->(other) WHERE other <> e
OPTIONAL MATCH (another)-[into:NEXT]->(after) WHERE another <> e
DELETE out, into
WITH DISTINCT e, before, after
FOREACH (one IN CASE WHEN before IS NULL THEN [] ELSE [before] END | MERGE (one)-[:NEXT]->(e))
FOREACH (one IN CASE WHEN after IS NULL THEN [] ELSE [after] END | MERGE (e)-[:NEXT]->(one))
