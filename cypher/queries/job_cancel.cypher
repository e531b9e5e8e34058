// Take a job off the queue unless somebody holds its lease; its scope is locked.
MATCH (j:Job {scope: $scope, id: $job})
WHERE j.state <> 'running' OR j.lease_until <= $now
DETACH DELETE j
RETURN count(*) AS cancelled
