// Keep why a job failed, unless somebody else took it over.
MATCH (j:Job {scope: $scope, id: $id})
WHERE j.token = $token
SET j.state = $state, j.run_at = coalesce($run_at, j.run_at), j.error = $error, j.token = null, j.lease_until = 0
