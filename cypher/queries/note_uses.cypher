// The feedback on notes.
UNWIND $ids AS id
MATCH (n:Note {scope: $scope, id: id})
OPTIONAL MATCH (n)-[:USED]->(u)
RETURN n.id AS id, MICROS(n.recorded_at) AS recorded_at, MICROS(u.since) AS since, u.times AS times,
  u.successes AS successes, u.failures AS failures
