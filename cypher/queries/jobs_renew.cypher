// Extend the lease of jobs, except those that another worker took over.
UNWIND $jobs AS row
MATCH (j:Job {scope: $scope, id: row.id})
WHERE j.token = row.token
SET j.lease_until = $until
