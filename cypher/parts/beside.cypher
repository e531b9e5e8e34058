// The visible notes next to an index node `centre` in its session, the nearest first.
CALL (centre) {
  MATCH (i:Index)
  WHERE i.place > left(centre.place, 48) AND i.place < centre.place AND {{placed}}
  WITH i ORDER BY i.place DESC LIMIT $beyond
  RETURN collect(i) AS before
}
CALL (centre) {
  MATCH (i:Index)
  WHERE i.place > centre.place AND i.place < left(centre.place, 48) + '~' AND {{placed}}
  WITH i ORDER BY i.place LIMIT $beyond
  RETURN collect(i) AS after
}
