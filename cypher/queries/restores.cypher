// Unfinished restores: their temporary key, the scope's key, and its name.
MATCH (r:Restoring)
RETURN r.scope AS scope, r.of AS of, r.name AS name ORDER BY r.born, r.scope
