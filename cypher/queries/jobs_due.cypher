// Scope and kind of the first due job. All jobs of a kind have one priority, so the index order decides within a kind;
// few jobs are running.
UNWIND $kinds AS kind
CALL (kind) {
  MATCH (j:Job)
  USING INDEX j:Job(kind, state, run_at, queued, number)
  WHERE j.kind = kind AND j.state = 'queued' AND j.run_at <= $now AND j.queued IS NOT NULL AND j.number IS NOT NULL
  //: when scoped
    AND j.scope = $scope
  //: end
  //: when busy
    AND (kind IN $any_order OR NOT j.scope IN $busy)
  //: end
  RETURN j ORDER BY j.kind, j.state, j.run_at, j.queued, j.number LIMIT 1
  UNION ALL
  MATCH (j:Job)
  USING INDEX j:Job(state)
  WHERE j.kind = kind AND j.state = 'running' AND j.lease_until <= $now
  //: when scoped
    AND j.scope = $scope
  //: end
  //: when busy
    AND (kind IN $any_order OR NOT j.scope IN $busy)
  //: end
  RETURN j
}
RETURN j.scope AS scope, j.kind AS kind ORDER BY j.priority DESC, j.run_at, j.queued, j.number LIMIT 1
