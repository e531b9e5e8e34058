// Jobs in the order they were queued.
MATCH (j:Job)
WHERE j.state IN $states
  //: when scoped
  AND j.scope = $scope
  //: end
MATCH (s:Scope {scope: j.scope})
WITH j, s ORDER BY j.queued, j.number
WITH j {.*, scope_name: s.name} AS job
// A job that another process deleted during this read has no properties.
WHERE job.id IS NOT NULL
RETURN job
