// Vectors of a scope that changed since a change count.
MATCH (v:Vector)
WHERE v.scope = $scope AND v.space = $space AND v.changed > $since
RETURN v.note AS note, v.seq AS seq, v.shown AS shown, v.bytes AS bytes
