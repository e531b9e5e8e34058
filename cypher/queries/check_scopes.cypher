// The sums of all scopes or of one scope, and the highest seq in use.
MATCH (s:Scope)
//: when scoped
WHERE s.scope = $scope
//: end
RETURN s.name AS name, s.secret AS secret, s.seq AS seq, s.notes AS notes, s.tokens AS tokens,
  COLLECT { MATCH (w:Word) WHERE w.scope = s.scope AND w.name IS NOT NULL RETURN [w.name, w.notes] } AS words,
  COLLECT { MATCH (x:Session) WHERE x.scope = s.scope AND x.name IS NOT NULL RETURN [x.name, x.tokens] } AS sessions,
  reduce(last = null, seq IN
    COLLECT { MATCH (x:Event) WHERE x.scope = s.scope AND x.seq >= 0 RETURN x.seq ORDER BY x.seq DESC LIMIT 1 }
    + COLLECT { MATCH (x:Note) WHERE x.scope = s.scope AND x.seq >= 0 RETURN x.seq ORDER BY x.seq DESC LIMIT 1 }
    + COLLECT { MATCH (x:Revision) WHERE x.scope = s.scope AND x.id IS NOT NULL RETURN x.seq ORDER BY x.seq DESC LIMIT 1 }
    | CASE WHEN last IS NULL OR seq > last THEN seq ELSE last END) AS last
ORDER BY s.born, s.scope
