// Index notes again, and return how many notes and events there are. Notes without new words keep their words.
UNWIND range(0, size($notes) - 1) AS at
MATCH (n:Note {scope: $scope, id: $notes[at].id})-[:FOUND_BY]->(i:Index)
WITH at, n, i ORDER BY at
WITH $changes AS changes, collect(n) AS notes, collect(i) AS indexes
{{index_notes}}
RETURN size(notes) AS notes, events
