// Queue failed jobs again without counted attempts, and return how many.
MATCH (j:Job)
WHERE j.state = 'failed'
  //: when scoped
  AND j.scope = $scope
  //: end
  //: when single
  AND j.id = $job
  //: end
SET j.state = 'queued', j.run_at = $now, j.attempts = 0
RETURN count(j) AS queued
