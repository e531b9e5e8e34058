// Delete nodes whose owner does not exist.
CALL () { MATCH (x:Index) WHERE NOT EXISTS { (x)<-[:FOUND_BY]-() } DETACH DELETE x }
CALL () { MATCH (x:Vector) WHERE NOT EXISTS { (x)<-[:HAS_VECTOR]-() } DETACH DELETE x }
CALL () { MATCH (x:Revision) WHERE NOT EXISTS { (x)<-[:REVISED]-() } DETACH DELETE x }
CALL () { MATCH (x:Base) WHERE NOT EXISTS { (x)<-[:BEGAN_AS]-() } DETACH DELETE x }
CALL () { MATCH (x:Term) WHERE NOT EXISTS { (x)<-[:HAS_TERM|TITLED]-() } DETACH DELETE x }
CALL () { MATCH (x:Job) WHERE NOT EXISTS { MATCH (s:Scope) WHERE s.scope = x.scope } DETACH DELETE x }
CALL () { MATCH (x:Answer) WHERE x.notes - COUNT { (x)-[:ASKED_ABOUT]->() } <> 0 DETACH DELETE x }
CALL () { MATCH (x:Search) WHERE x.notes - COUNT { (x)-[:FOUND]->() } <> 0 DETACH DELETE x }
CALL () { MATCH (x:Usage) WHERE NOT EXISTS { (x)<-[:USED]-() } DETACH DELETE x }
