// Delete jobs that their workers still lease, and return how many.
UNWIND $jobs AS row
MATCH (j:Job {scope: $scope, id: row.id})
WHERE j.token = row.token
DETACH DELETE j
RETURN count(*) AS finished
