// Make this the only vector set.
MATCH (x:Space)
WITH x, x.id = $space AS chosen
CALL (x, chosen) {
  WITH x WHERE NOT chosen
  MATCH (v:Vector) WHERE v.space = x.id
  DETACH DELETE v
}
SET x.active = true
WITH x WHERE NOT chosen
DELETE x
