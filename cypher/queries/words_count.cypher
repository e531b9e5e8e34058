// Count the notes that hold each word; the words come sorted.
UNWIND $words AS word
MERGE (w:Word {scope: $scope, name: word.name})
ON CREATE SET w.notes = word.notes
ON MATCH SET w.notes = w.notes + word.notes
