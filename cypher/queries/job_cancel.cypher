// Remove a job from the queue unless a worker has leased it. The caller has locked the scope.
MATCH (j:Job {scope: $scope, id: $job})
WHERE j.state <> 'running' OR j.lease_until <= $now
DETACH DELETE j
RETURN count(*) AS cancelled
