// Properties of the whole scope, independent of valid time: `used` if any note has feedback, `archived` if any note is
// archived.
EXISTS { MATCH (u:Usage) WHERE u.scope = $scope AND u.note IS NOT NULL } AS used,
  EXISTS { MATCH (n:Note) WHERE n.scope = $scope AND n.archived = true AND n.id IS NOT NULL } AS archived
