// The next notes with the links that they decided, or with their derived links.
MATCH (n:Note)
WHERE n.scope = $scope AND n.seq > $after
WITH n ORDER BY n.seq LIMIT $limit
RETURN n.seq AS seq, n.id AS id, COLLECT {
  MATCH (n)-[l:{{links}}]-()
  WHERE l.decided = $decided AND coalesce(l.owner, startNode(l).id) = n.id
  RETURN {source: startNode(l).id, target: endNode(l).id, type: type(l), weight: l.weight, reason: l.reason,
    recorded_at: MICROS(l.recorded_at)} ORDER BY type(l), endNode(l).id, startNode(l).id
} AS links
ORDER BY n.seq
