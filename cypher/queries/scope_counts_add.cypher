// Add to the scope's sums of indexed notes and tokens.
MATCH (s:{{label}} {scope: $scope})
SET s.notes = s.notes + $notes, s.tokens = s.tokens + $tokens
