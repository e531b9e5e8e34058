// What there is anywhere in a scope, whatever the clocks let through: a note that feedback tells of, one that is archived.
EXISTS { MATCH (u:Usage) WHERE u.scope = $scope AND u.note IS NOT NULL } AS used,
  EXISTS { MATCH (n:Note) WHERE n.scope = $scope AND n.archived = true AND n.id IS NOT NULL } AS archived
