// Notes without a vector in a set, oldest first.
MATCH (s:Scope)
CALL (s) {
  MATCH (n:Note)
  WHERE n.scope = s.scope AND n.seq >= 0 AND n.archived IS NULL
    AND NOT EXISTS { MATCH (n)-[:HAS_VECTOR]->(v:Vector) WHERE v.space = $space }
  RETURN n ORDER BY n.seq LIMIT $limit
}
WITH s, n ORDER BY s.born, s.scope, n.seq LIMIT $limit
RETURN s.name AS scope, {{note}} AS note ORDER BY s.born, s.scope, n.seq
