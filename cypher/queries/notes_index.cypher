// Say anew what notes are found by; how many of them and of their events there are. Of those that have no new words only
// the rest is said.
UNWIND range(0, size($notes) - 1) AS at
MATCH (n:Note {scope: $scope, id: $notes[at].id})-[:FOUND_BY]->(i:Index)
WITH at, n, i ORDER BY at
WITH $changes AS changes, collect(n) AS notes, collect(i) AS found
{{indexing}}
RETURN size(notes) AS notes, events
