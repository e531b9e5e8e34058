// Lease due jobs of one kind, most urgent first. The caller has locked the scope; a deleted scope has no jobs.
MATCH (s:Scope {scope: $scope})
CALL (s) {
  MATCH (j:Job)
  USING INDEX j:Job(scope, kind, state, run_at, queued, number)
  WHERE j.scope = s.scope AND j.kind = $kind AND j.state = 'queued' AND j.run_at <= $now
    AND j.queued IS NOT NULL AND j.number IS NOT NULL
  RETURN j ORDER BY j.scope, j.kind, j.state, j.run_at, j.queued, j.number LIMIT $limit
  UNION ALL
  MATCH (j:Job)
  USING INDEX j:Job(scope, kind, state, run_at, queued, number)
  WHERE j.scope = s.scope AND j.kind = $kind AND j.state = 'running' AND j.lease_until <= $now
    AND j.run_at IS NOT NULL AND j.queued IS NOT NULL AND j.number IS NOT NULL
  RETURN j ORDER BY j.scope, j.kind, j.state, j.run_at, j.queued, j.number LIMIT $limit
}
WITH s, j ORDER BY j.priority DESC, j.run_at, j.queued, j.number LIMIT $limit
WITH s, collect(j) AS jobs
UNWIND range(0, size(jobs) - 1) AS at
WITH s, at, jobs[at] AS j
SET j.state = 'running', j.attempts = j.attempts + 1, j.token = $tokens[at], j.lease_until = $until
RETURN j {.*, scope_name: s.name} AS job ORDER BY at
