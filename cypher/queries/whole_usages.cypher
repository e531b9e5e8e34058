// The next notes with feedback.
MATCH (n:Note)
WHERE n.scope = $scope AND n.seq > $after
MATCH (n)-[:USED]->(u)
RETURN n.id AS id, n.seq AS seq, MICROS(u.since) AS since, u.times AS times, u.successes AS successes,
  u.failures AS failures
ORDER BY n.seq LIMIT $limit
