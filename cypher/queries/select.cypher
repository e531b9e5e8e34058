// The ids of selected notes or events, in order.
{{selected}}
WITH DISTINCT id, seq, time
//: when time
//: when backwards
ORDER BY time IS NULL, time DESC, seq DESC LIMIT $limit
//: otherwise
ORDER BY time IS NULL, time, seq LIMIT $limit
//: end
//: otherwise
//: when backwards
ORDER BY seq DESC LIMIT $limit
//: otherwise
ORDER BY seq LIMIT $limit
//: end
//: end
RETURN id
