// Make this the only vector set. The vectors of the others are deleted later.
MATCH (x:Space)
SET x.active = x.id = $space
WITH x WHERE x.id <> $space
SET x:LeavingSpace
REMOVE x:Space
