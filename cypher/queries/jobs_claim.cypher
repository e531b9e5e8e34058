// Take due jobs of one kind, most urgent first. The scope is locked.
MATCH (j:Job)
WHERE j.scope = $scope AND j.kind = $kind AND j.note IS NOT NULL AND j.version IS NOT NULL
  AND ((j.state = 'queued' AND j.run_at <= $now) OR (j.state = 'running' AND j.lease_until <= $now))
WITH j ORDER BY j.priority DESC, j.run_at, j.queued, j.number LIMIT $limit
WITH collect(j) AS jobs
UNWIND range(0, size(jobs) - 1) AS at
WITH at, jobs[at] AS j
SET j.state = 'running', j.attempts = j.attempts + 1, j.token = $tokens[at], j.lease_until = $until
WITH at, j
MATCH (s:Scope {scope: j.scope})
RETURN j {.*, scope_name: s.name} AS job ORDER BY at
