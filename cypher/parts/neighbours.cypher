// The visible notes before and after a `place` in its session, nearest first.
CALL (place) {
  MATCH (i:Index)
  WHERE i.place > left(place, 48) AND i.place < place AND {{place_visible}}
  WITH i ORDER BY i.place DESC LIMIT $beyond
  RETURN collect(i) AS before
}
CALL (place) {
  MATCH (i:Index)
  WHERE i.place > place AND i.place < left(place, 48) + '~' AND {{place_visible}}
  WITH i ORDER BY i.place LIMIT $beyond
  RETURN collect(i) AS after
}
