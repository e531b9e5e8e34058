// Vector sets that are gone but for their vectors.
MATCH (x:LeavingSpace)
RETURN x.id AS id
