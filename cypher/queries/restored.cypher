// Scopes that are being restored: their keys for now, and whose they will be.
MATCH (r:Restoring)
RETURN r.scope AS scope, r.of AS of, r.name AS name ORDER BY r.born, r.scope
