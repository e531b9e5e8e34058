// The notes n that an exact query selects, or with the flag `events` their events; each with id, seq, session and time.
//: when words
CALL db.index.fulltext.queryNodes('zettel_words', $words) YIELD node AS i
MATCH (n:Note {scope: $scope, id: i.id})
//: otherwise
MATCH (n:Note)
//: end
WHERE n.scope = $scope AND n.id IS NOT NULL AND n.archived IS NULL
  AND {{filter}}
  //: when terms
  AND any(term IN $terms WHERE EXISTS { (n)-[:HAS_TERM]->(:Term {scope: $scope, name: term}) })
  //: end
  //: when as_of
  AND (n.valid_from IS NULL OR n.valid_from <= $moment)
  AND (n.valid_to IS NULL OR n.valid_to > $moment)
  AND (n.valid_to IS NOT NULL OR NOT EXISTS {
    MATCH (newer:Note)-[link:SUPERSEDES]->(n) WHERE coalesce(newer.valid_from, link.recorded_at) <= $moment
  })
  //: end
//: when events
MATCH (n)-[:FROM]->(e:Event)
WHERE n.kind = 'episodic' AND e.id IN n.event_ids
  AND ($of_session IS NULL OR e.session = $of_session)
  AND ($from IS NULL OR e.occurred_at >= $from)
  AND ($to IS NULL OR e.occurred_at < $to)
WITH n, e.id AS id, e.seq AS seq, e.session AS session, e.occurred_at AS time
//: otherwise
WITH n, n.id AS id, n.seq AS seq, n.session AS session, n.occurred_at AS time
//: end
