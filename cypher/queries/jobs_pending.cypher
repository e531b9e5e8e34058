// How many jobs are queued or running.
MATCH (j:Job)
WHERE j.state IN ['queued', 'running']
  //: when scoped
  AND j.scope = $scope
  //: end
RETURN count(j) AS pending
