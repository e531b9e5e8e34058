// The state of a scope, and the latest time of its events.
s.seq AS seq, s.secret AS secret, s.recorded_at AS recorded_at, s.changes AS changes, s.floor AS floor,
  COLLECT {
    MATCH (e:Event)
    WHERE e.scope = $scope AND e.occurred_at IS NOT NULL
    RETURN MICROS(e.occurred_at) ORDER BY e.scope DESC, e.occurred_at DESC LIMIT 1
  }[0] AS latest
