// Count jobs of these kinds that are running, or queued to run by a time.
MATCH (j:Job)
WHERE j.state IN ['queued', 'running'] AND (j.state = 'running' OR j.run_at <= $by) AND j.kind IN $kinds
  //: when scoped
  AND j.scope = $scope
  //: end
RETURN count(j) AS pending
