// Sessions
// All sessions of a memory, with their times, number of events and speakers.
MATCH (event:Event {scope: $scope})
WHERE event.session IS NOT NULL
RETURN event.session AS session, min(event.occurred_at) AS began, max(event.occurred_at) AS ended,
       count(*) AS events, collect(DISTINCT event.speaker) AS speakers
ORDER BY began
