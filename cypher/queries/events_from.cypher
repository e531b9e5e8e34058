// The first events of a file or a session.
MATCH (e:Event)
WHERE e.scope = $scope AND e.seq >= 0
  //: when file
  AND e.file = $file
  //: end
  //: when session
  AND e.session = $session
  //: end
RETURN e.id AS id ORDER BY e.seq LIMIT $limit
