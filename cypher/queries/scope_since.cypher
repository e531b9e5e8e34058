// What a scope held in memory has to learn: of the notes that changed `since`, or as long as it is not held whole of the
// next ones `after` a number, all that they are found by, in the order in which `held` takes it.
MATCH (s:Scope {scope: $scope})
CALL (s) {
  //: when growing
  MATCH (n:Note)
  WHERE n.scope = $scope AND n.seq > $after
  WITH n ORDER BY n.scope, n.seq LIMIT $most
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
  ]) AS told
}
RETURN s.born AS born, s.changes AS changes, s.floor AS floor, s.seq AS seq, s.notes AS notes, told,
  {{anywhere}}
