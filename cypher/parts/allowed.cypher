// Whether the filter lets a note through.
(size($kinds) = 0 OR n.kind IN $kinds)
  AND (size($tags) = 0 OR any(tag IN $tags WHERE tag IN n.tags))
  AND ($session IS NULL OR n.session = $session)
  AND ($role IS NULL OR n.role = $role)
  AND ($since IS NULL OR n.occurred_at >= $since)
  AND ($until IS NULL OR n.occurred_at < $until)
  AND all(pair IN $pairs WHERE pair IN n.metadata)
  AND ($file IS NULL OR $file IN n.files)
