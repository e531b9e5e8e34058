// The fields of unarchived notes that every search reads, in the order of `candidates.NoteFields`.
UNWIND $ids AS id
MATCH (i:Index {scope: $scope, id: id})<-[:FOUND_BY]-(n)
WHERE i.words IS NOT NULL
OPTIONAL MATCH (n)-[:HAS_VECTOR]->(v) WHERE v.space = $space AND v.shown
RETURN collect([i.row, i.length, coalesce(v.code, ''), coalesce(i.superseded, false),
  COLLECT { MATCH (n)-[l:{{links}}]->(target) RETURN [target.seq, type(l), l.weight] },
  COLLECT { MATCH (n)-[:HAS_TERM]->(t) RETURN t.name }]) AS fields
