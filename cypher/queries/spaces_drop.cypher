// Forget vector sets of which nothing is left.
UNWIND $spaces AS id
MATCH (x:LeavingSpace)
WHERE x.id = id
DELETE x
