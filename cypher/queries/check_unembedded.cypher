// Notes without a vector in the active set and without a queued job for one.
MATCH (active:Space)
WHERE active.active
CALL (active) {
  MATCH (n:Note)
  WHERE n.scope = $scope AND n.seq >= 0 AND n.archived IS NULL
    AND NOT EXISTS { MATCH (n)-[:HAS_VECTOR]->(v:Vector) WHERE v.space = active.id }
    AND NOT EXISTS { MATCH (j:Job)-[:ABOUT]->(n) WHERE j.kind = 'embed' AND j.state <> 'failed' }
    AND NOT EXISTS { MATCH (j:Job) WHERE j.scope = $scope AND j.id IS NOT NULL AND j.kind = 'reembed' }
  RETURN n
}
RETURN n.id AS id ORDER BY n.seq
