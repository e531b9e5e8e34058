// Things
// What the notes are filed under, the most used first.
// $most = 100  how many
MATCH (term:Term {scope: $scope})
MATCH (term)<-[has:HAS_TERM]-(note:Note)
RETURN term.name AS thing, collect(DISTINCT has.kind) AS kinds, count(DISTINCT note) AS notes
ORDER BY notes DESC, thing LIMIT $most
