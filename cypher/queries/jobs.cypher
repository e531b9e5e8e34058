// Jobs in the order they were queued.
MATCH (j:Job)
WHERE j.state IN $states
  //: when scoped
  AND j.scope = $scope
  //: end
MATCH (s:Scope {scope: j.scope})
RETURN j {.*, scope_name: s.name} AS job ORDER BY j.queued, j.number
