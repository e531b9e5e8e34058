// Destroy the vectors of sets that are gone, in transactions of their own; run again, it goes on with what is left.
MATCH (v:Vector)
WHERE v.space IN $spaces
CALL (v) {
  DETACH DELETE v
} IN TRANSACTIONS OF {{page}} ROWS
