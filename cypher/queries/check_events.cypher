// The events of sessions in order of arrival, with their place and their next event.
MATCH (e:Event)
WHERE e.scope = $scope AND e.seq >= 0 AND e.session IS NOT NULL
RETURN e.id AS id, e.session AS session, e.seq AS seq, MICROS(e.occurred_at) AS at, right(e.place, 31) AS place,
  COLLECT { MATCH (e)-[:NEXT]->(after) RETURN after.id }[0] AS next
ORDER BY e.seq
