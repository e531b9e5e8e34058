// Sessions
// All sessions of a memory: when they were, how much was said, and by whom.
MATCH (event:Event {scope: $scope})
WHERE event.session IS NOT NULL
RETURN event.session AS session, min(event.occurred_at) AS began, max(event.occurred_at) AS ended,
       count(*) AS events, [role IN collect(DISTINCT event.role) WHERE role IS NOT NULL] AS speakers
ORDER BY began
