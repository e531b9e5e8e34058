// What a batch took out of the index changes the scope's statistics too.
MATCH (s:{{label}} {scope: $scope})
SET s.notes = s.notes + $notes, s.tokens = s.tokens + $tokens
