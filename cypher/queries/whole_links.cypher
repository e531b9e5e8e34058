// The next notes with the links that they decided, or with those that were derived from their texts.
MATCH (n:Note)
WHERE n.scope = $scope AND n.seq > $after
WITH n ORDER BY n.seq LIMIT $limit
RETURN n.seq AS seq, n.id AS id, COLLECT {
  MATCH (n)-[l:{{links}}]->(target:Note)
  WHERE l.decided = $decided
  RETURN {source: n.id, target: target.id, type: type(l), weight: l.weight, reason: l.reason,
    recorded_at: MICROS(l.recorded_at)} ORDER BY type(l), target.id
} AS links
ORDER BY n.seq
