// Counts of one scope or of all scopes.
MATCH (s:Scope)
//: when scoped
WHERE s.scope = $scope
//: end
WITH s, COLLECT { MATCH (active:Space) WHERE active.active RETURN active.id } AS active
RETURN count(s) AS scopes,
  sum(COUNT { MATCH (x:Event) WHERE x.scope = s.scope AND x.id IS NOT NULL }) AS events,
  sum(COUNT { MATCH (x:Note) WHERE x.scope = s.scope AND x.id IS NOT NULL }) AS notes,
  sum(COUNT { MATCH (x:Note) WHERE x.scope = s.scope AND x.id IS NOT NULL AND x.archived }) AS archived,
  sum(COUNT { MATCH (x:Term) WHERE x.scope = s.scope AND x.name IS NOT NULL AND EXISTS { (x)<-[:HAS_TERM]-() } }) AS terms,
  sum(COUNT { MATCH (x:Note)-[:{{links}}]->() WHERE x.scope = s.scope AND x.id IS NOT NULL }) AS links,
  sum(COUNT { MATCH (x:Revision) WHERE x.scope = s.scope AND x.id IS NOT NULL }) AS revisions,
  sum(COUNT { MATCH (x:Vector) WHERE x.scope = s.scope AND x.id IS NOT NULL AND x.space IN active }) AS vectors,
  sum(COUNT { MATCH (x:Job) WHERE x.scope = s.scope AND x.id IS NOT NULL AND x.state <> 'failed' }) AS jobs,
  sum(COUNT { MATCH (x:Job) WHERE x.scope = s.scope AND x.id IS NOT NULL AND x.state = 'failed' }) AS failed
