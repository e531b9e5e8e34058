// Store the error of failed jobs, except those that another worker took over.
UNWIND $jobs AS row
MATCH (j:Job {scope: $scope, id: row.id})
WHERE j.token = row.token
SET j.state = $state, j.run_at = coalesce($run_at, j.run_at), j.error = $error,
  j.attempts = j.attempts - $uncounted, j.token = null, j.lease_until = 0
