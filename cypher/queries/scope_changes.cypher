// The state of a scope for the cache, with index rows of notes in the order in which `scope_cache` reads them: those
// that changed since a count, or (loading) the next page of an incomplete scope.
MATCH (s:Scope {scope: $scope})
CALL (s) {
  //: when loading
  MATCH (n:Note)
  WHERE n.scope = $scope AND n.seq > $after
  WITH n ORDER BY n.scope, n.seq LIMIT $limit
  MATCH (n)-[:FOUND_BY]->(i)
  //: otherwise
  WITH s
  WHERE s.born = $born AND s.floor <= $changes AND s.seq - $seq <= $behind
  MATCH (i:Index)
  WHERE i.scope = $scope AND i.changed > $since
  MATCH (n)-[:FOUND_BY]->(i)
  //: end
  RETURN collect([
    i.row, i.place, i.length, i.words, i.often, n.session, n.tags, n.metadata, n.files,
    COLLECT { MATCH (n)-[:HAS_VECTOR]->(v) WHERE v.space = $space AND v.shown RETURN v.bytes }[0],
    COLLECT { MATCH (n)-[:HAS_TERM]->(t) RETURN t.name },
    COLLECT { MATCH (n)-[:TITLED]->(t) RETURN t.name },
    COLLECT { MATCH (n)-[l:{{links}}]->(target) RETURN [target.seq, type(l), l.weight, MICROS(l.recorded_at)] }
  ]) AS rows
}
RETURN s.born AS born, s.changes AS changes, s.floor AS floor, s.seq AS seq, s.notes AS notes, rows,
  {{scope_flags}}
