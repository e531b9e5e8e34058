// The count of a word in the note of an index node i.
CASE WHEN i.often CONTAINS word THEN toInteger(split(split(i.often, word + '=')[1], ' ')[0]) ELSE 1 END
