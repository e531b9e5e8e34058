// The state of a scope, and its number of notes.
MATCH (s:Scope {scope: $scope})
RETURN s.notes AS notes, {{scope_state}}
