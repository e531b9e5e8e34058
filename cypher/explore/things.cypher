// Terms
// The terms of all notes, most frequent first.
// $most = 100  maximum number of terms
MATCH (term:Term {scope: $scope})
MATCH (term)<-[has:HAS_TERM]-(note:Note)
RETURN term.name AS thing, collect(DISTINCT has.kind) AS kinds, count(DISTINCT note) AS notes
ORDER BY notes DESC, thing LIMIT $most
