// Make this the only vector set. The others are gone for everybody; their vectors are destroyed afterwards.
MATCH (x:Space)
SET x.active = x.id = $space
WITH x WHERE x.id <> $space
SET x:LeavingSpace
REMOVE x:Space
