// The derived links of a scope that were recorded by a time.
MATCH (n:Note)
WHERE n.scope = $scope AND n.seq >= 0
MATCH (n)-[l:MENTIONS]->(target:Note)
WHERE NOT l.decided AND l.recorded_at <= $known
RETURN n.id AS source, target.id AS target, type(l) AS type, l.weight AS weight, l.reason AS reason,
  MICROS(l.recorded_at) AS recorded_at
