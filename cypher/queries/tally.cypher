// Selected notes or events, counted by the values of some fields.
{{selected}}
//: when tag
UNWIND n.tags AS label
//: end
//: when term
MATCH (n)-[:HAS_TERM]->(t:Term)
//: end
WITH n, id, session, MICROS(time) AS at,
  //: when tag
  label
  //: otherwise
  //: when term
  t.name AS label
  //: otherwise
  null AS label
  //: end
  //: end
WITH id, at, [field IN $by | CASE field
  WHEN 'kind' THEN n.kind
  WHEN 'speaker' THEN n.speaker
  WHEN 'role' THEN n.role
  WHEN 'session' THEN session
  WHEN 'day' THEN (at - (at % $day + $day) % $day) / $day
  WHEN 'slot' THEN (at - (at % $slot + $slot) % $slot) / $slot
  ELSE label END] AS key
RETURN key, count(DISTINCT id) AS count, min(at) AS first, max(at) AS last
