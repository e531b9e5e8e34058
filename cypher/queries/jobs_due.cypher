// Whose due job comes first, and of which kind.
MATCH (j:Job)
WHERE j.state IN ['queued', 'running'] AND j.kind IN $kinds
  AND ((j.state = 'queued' AND j.run_at <= $now) OR (j.state = 'running' AND j.lease_until <= $now))
  //: when scoped
  AND j.scope = $scope
  //: end
  //: when busy
  AND (j.kind IN $any_order OR NOT j.scope IN $busy)
  //: end
RETURN j.scope AS scope, j.kind AS kind ORDER BY j.priority DESC, j.run_at, j.queued, j.number LIMIT 1
