// The state of a scope, the latest time of its events, and the first time at which a note expires.
s.seq AS seq, s.secret AS secret, s.recorded_at AS recorded_at, s.changes AS changes, s.floor AS floor,
  COLLECT {
    MATCH (e:Event)
    WHERE e.scope = $scope AND e.occurred_at IS NOT NULL
    RETURN MICROS(e.occurred_at) ORDER BY e.scope DESC, e.occurred_at DESC LIMIT 1
  }[0] AS latest,
  COLLECT {
    MATCH (n:Note)
    WHERE n.scope = $scope AND n.expires_at IS NOT NULL AND n.id IS NOT NULL AND n.archived IS NULL
    RETURN MICROS(n.expires_at) ORDER BY n.scope, n.expires_at LIMIT 1
  }[0] AS expires, s.retention AS retention
