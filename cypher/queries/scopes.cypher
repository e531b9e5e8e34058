// All scopes, oldest first.
MATCH (s:Scope)
RETURN s.name AS name ORDER BY s.born, s.scope
