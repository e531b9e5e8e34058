// Removed vector sets whose vectors may remain.
MATCH (x:LeavingSpace)
RETURN x.id AS id
