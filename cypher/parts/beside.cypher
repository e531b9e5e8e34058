// The visible notes next to a `place` in its session, the nearest first.
CALL (place) {
  MATCH (i:Index)
  WHERE i.place > left(place, 48) AND i.place < place AND {{placed}}
  WITH i ORDER BY i.place DESC LIMIT $beyond
  RETURN collect(i) AS before
}
CALL (place) {
  MATCH (i:Index)
  WHERE i.place > place AND i.place < left(place, 48) + '~' AND {{placed}}
  WITH i ORDER BY i.place LIMIT $beyond
  RETURN collect(i) AS after
}
