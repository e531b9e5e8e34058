// Leave jobs to whoever is at them for longer, but those that somebody else took over.
UNWIND $jobs AS row
MATCH (j:Job {scope: $scope, id: row.id})
WHERE j.token = row.token
SET j.lease_until = $until
