// The state of the locked scope before the batch, and the vector sets of the store.
previous.seq AS seq, previous.secret AS secret, previous.changes AS changes, previous.written AS written, unsettled,
  COLLECT { MATCH (space:Space) RETURN [space.id, space.dim] } AS spaces
