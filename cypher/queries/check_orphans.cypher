// Counts of nodes whose owner does not exist, by kind. Neo4j 5.26 cannot plan the comparison of a count with a
// property, so answers and searches compare differences.
RETURN COUNT { MATCH (x:Index) WHERE NOT EXISTS { (x)<-[:FOUND_BY]-() } } AS index,
  COUNT { MATCH (x:Vector) WHERE NOT EXISTS { (x)<-[:HAS_VECTOR]-() } } AS vectors,
  COUNT { MATCH (x:Revision) WHERE NOT EXISTS { (x)<-[:REVISED]-() } } AS revisions,
  COUNT { MATCH (x:Base) WHERE NOT EXISTS { (x)<-[:BEGAN_AS]-() } } AS bases,
  COUNT { MATCH (x:Term) WHERE NOT EXISTS { (x)<-[:HAS_TERM|TITLED]-() } } AS terms,
  COUNT { MATCH (x:Job) WHERE NOT EXISTS { MATCH (s:Scope) WHERE s.scope = x.scope } } AS jobs,
  COUNT { MATCH (x:Answer) WHERE x.notes - COUNT { (x)-[:ASKED_ABOUT]->() } <> 0 } AS answers,
  COUNT { MATCH (x:Search) WHERE x.notes - COUNT { (x)-[:FOUND]->() } <> 0 } AS searches,
  COUNT { MATCH (x:Usage) WHERE NOT EXISTS { (x)<-[:USED]-() } } AS usages
