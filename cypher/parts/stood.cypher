// Where the locked scope stood, and which vector sets there are.
stood.seq AS seq, stood.secret AS secret, stood.changes AS changes, stood.written AS written, unsettled,
  COLLECT { MATCH (space:Space) RETURN [space.id, space.dim] } AS spaces
