// Delete the vectors of removed sets in several transactions. A second run continues.
MATCH (v:Vector)
WHERE v.space IN $spaces
CALL (v) {
  DETACH DELETE v
} IN TRANSACTIONS OF {{page}} ROWS
