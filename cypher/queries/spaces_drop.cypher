// Delete removed vector sets whose vectors are deleted.
UNWIND $spaces AS id
MATCH (x:LeavingSpace)
WHERE x.id = id
DELETE x
