// A scope's note count and change count, and how many of its vectors may not be in the vector index.
MATCH (s:Scope {scope: $scope})
RETURN s.notes AS notes, s.changes AS changes,
  COUNT { MATCH (v:Vector) WHERE v.scope = $scope AND v.space = $space AND v.changed > s.indexed } AS pending
