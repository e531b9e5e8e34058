// How many nodes of each kind hang on something that is not there. (5.26 fails to plan a count compared with a property,
// so those of answers and searches are differences.)
RETURN COUNT { MATCH (x:Index) WHERE NOT EXISTS { (x)<-[:FOUND_BY]-() } } AS index,
  COUNT { MATCH (x:Vector) WHERE NOT EXISTS { (x)<-[:HAS_VECTOR]-() } } AS vectors,
  COUNT { MATCH (x:Revision) WHERE NOT EXISTS { (x)<-[:REVISED]-() } } AS revisions,
  COUNT { MATCH (x:Base) WHERE NOT EXISTS { (x)<-[:BEGAN_AS]-() } } AS bases,
  COUNT { MATCH (x:Term) WHERE NOT EXISTS { (x)<-[:HAS_TERM|TITLED]-() } } AS terms,
  COUNT { MATCH (x:Job) WHERE NOT EXISTS { MATCH (s:Scope) WHERE s.scope = x.scope } } AS jobs,
  COUNT { MATCH (x:Answer) WHERE x.notes - COUNT { (x)-[:ASKED_ABOUT]->() } <> 0 } AS answers,
  COUNT { MATCH (x:Search) WHERE x.notes - COUNT { (x)-[:FOUND]->() } <> 0 } AS searches,
  COUNT { MATCH (x:Usage) WHERE NOT EXISTS { (x)<-[:USED]-() } } AS usages
