// The candidates of a question, by the rules of zettel.ports.candidate_rules: the candidate sources one by one, the
// neighbouring turns, the walk, and then the values of all these notes, each note numbered by its place in `indexes`.
// Index nodes stand for notes, because they have fewer relationships.
//: when cypher25
CYPHER 25
//: end
MATCH (s:Scope {scope: $scope})
// Statistics of the visible notes.
//: when as_of
CALL (s) {
  MATCH (i:Index)
  WHERE i.scope = $scope AND i.id IS NOT NULL AND {{index_visible}}
  RETURN count(i) AS notes, sum(i.length) AS tokens
}
CALL (s) {
  UNWIND range(0, size($words) - 1) AS at
  CALL (at) {
    CALL db.index.fulltext.queryNodes('zettel_words', $words[at]) YIELD node AS i
    WHERE {{index_visible}}
    RETURN count(i) AS matches
  }
  WITH at, matches ORDER BY at
  RETURN collect(matches) AS df
}
WITH s, notes, tokens, df
//: otherwise
CALL (s) {
  UNWIND range(0, size($words) - 1) AS at
  OPTIONAL MATCH (w:Word {scope: $scope, name: $words[at]})
  WITH at, coalesce(w.notes, 0) AS matches ORDER BY at
  RETURN collect(matches) AS df
}
WITH s, s.notes AS notes, s.tokens AS tokens, df
//: end
// TEXT: postings of the rarest words, within the budget.
CALL (df) {
  UNWIND range(0, size($words) - 1) AS at
  WITH at, df[at] AS matches WHERE matches > 0
  ORDER BY matches, at
  WITH collect({at: at, df: matches}) AS rarest
  RETURN reduce(taken = {spent: 0, words: []}, word IN rarest |
    CASE WHEN size(taken.words) = 0 OR taken.spent + word.df <= $budget
      THEN {spent: taken.spent + word.df, words: taken.words + word.at} ELSE taken END).words AS read
}
CALL (read) {
  UNWIND read AS at
  WITH at, $words[at] AS word
  CALL (word) {
    CALL db.index.fulltext.queryNodes('zettel_words', word) YIELD node AS i
    WHERE {{index_visible}}
    RETURN i
  }
  RETURN collect([at, i, {{word_count}}]) AS postings
}
CALL (postings, df, notes, tokens) {
  WITH postings, [count IN df | log(1 + (notes - count + 0.5) / (count + 0.5))] AS idf,
    $k1 * (1 - $b) AS base, $k1 * $b / CASE WHEN tokens > notes THEN toFloat(tokens) / notes ELSE 1.0 END AS slope
  UNWIND postings AS posting
  WITH posting[1] AS i, idf[posting[0]] AS weight, posting[2] AS tf, base, slope
  WITH i, sum(weight * tf * ($k1 + 1) / (tf + base + slope * i.length)) AS score
  //: when filtered
  MATCH (n:Note)-[:FOUND_BY]->(i)
  WHERE {{filter}}
  //: end
  WITH i, score ORDER BY score DESC, i.seq LIMIT $pool
  RETURN collect(i) AS by_text
}
// VECTOR
//: when vector
CALL (s) {
  {{nearest}}
  MATCH (v)<-[:HAS_VECTOR]-(n)-[:FOUND_BY]->(i)
  WITH i, cosine, v.seq AS seq ORDER BY cosine DESC, seq
  RETURN collect(i) AS by_vector
}
//: end
//: when indexed
CALL (s) {
  CALL (s) {
    {{nearest_indexed}}
    RETURN v, cosine
    UNION
    {{nearest_pending}}
    RETURN v, cosine
  }
  WITH v, max(cosine) AS cosine
  ORDER BY cosine DESC, v.seq LIMIT $pool
  MATCH (v)<-[:HAS_VECTOR]-(n)-[:FOUND_BY]->(i)
  WITH i, cosine, v.seq AS seq ORDER BY cosine DESC, seq
  RETURN collect(i) AS by_vector
}
//: end
//: when no_vector
WITH *, [] AS by_vector
//: end
// TITLE
CALL (s) {
  UNWIND $names AS name
  MATCH (:Term {scope: $scope, name: name})<-[:TITLED]-(n:Note)
  WHERE {{note_matches}}
  WITH DISTINCT n ORDER BY n.seq LIMIT $pool
  MATCH (n)-[:FOUND_BY]->(i)
  RETURN collect(i) AS by_title
}
// TERM
CALL (s) {
  UNWIND $names AS name
  MATCH (t:Term {scope: $scope, name: name})
  WITH t, {{term_df}} AS df WHERE df > 0
  ORDER BY df, t.name
  WITH collect({term: t, df: df}) AS rarest
  RETURN reduce(taken = {spent: 0, terms: []}, entry IN rarest | CASE WHEN taken.spent + entry.df <= $pool
    THEN {spent: taken.spent + entry.df, terms: taken.terms + entry.term}
    ELSE {spent: taken.spent + entry.df, terms: taken.terms} END).terms AS taken
}
CALL (taken) {
  UNWIND taken AS t
  MATCH (t)<-[:HAS_TERM]-(n)
  WHERE {{note_matches}}
  WITH DISTINCT n
  MATCH (n)-[:FOUND_BY]->(i)
  RETURN collect(i) AS by_term
}
// TIME
CALL (s) {
  UNWIND $times AS period
  MATCH (n:Note)
  WHERE n.scope = $scope AND n.occurred_at >= period.start AND n.occurred_at < period.end AND {{note_matches}}
  WITH DISTINCT n ORDER BY n.seq LIMIT $pool
  MATCH (n)-[:FOUND_BY]->(i)
  RETURN collect(i) AS by_time
}
// NEIGHBOUR
CALL (by_vector, by_text) {
  UNWIND by_vector[..$anchors] + by_text[..$anchors] AS anchor
  WITH DISTINCT anchor AS centre, anchor.place AS place WHERE place IS NOT NULL
  {{neighbours}}
  RETURN collect({centre: centre, before: before, after: after}) AS anchored
}
CALL (anchored) {
  UNWIND anchored AS run
  UNWIND [run.centre] + run.before[..$window] + run.after[..$window] AS i
  WITH DISTINCT i
  //: when filtered
  MATCH (i)<-[:FOUND_BY]-(n)
  WHERE {{filter}}
  //: end
  RETURN collect(i) AS by_neighbour
}
// WALK
CALL (by_vector, by_text, by_title, by_term) {
  UNWIND [at IN range(0, size(by_vector[..$walk_seeds]) - 1) | [by_vector[at], 1.0 / (1 + at)]]
    + [at IN range(0, size(by_text[..$walk_seeds]) - 1) | [by_text[at], 1.0 / (1 + at)]]
    + [i IN by_title | [i, 1.0]] + [i IN by_term | [i, 1.0 / size(by_term)]] AS start
  WITH start[0] AS i, sum(start[1]) AS share
  MATCH (i)<-[:FOUND_BY]-(n)
  RETURN collect([n, share]) AS starts, collect(n) AS starting
}
CALL (starts, starting) {
  WITH starts AS leaving, starting
  {{hop}}
  WITH reached, received ORDER BY received DESC, reached.seq
  RETURN collect([reached, received]) AS first
}
CALL (first, starting) {
  WITH first[..$walk_beam] AS leaving, starting
  {{hop}}
  RETURN collect([reached, received]) AS second
}
CALL (first, second) {
  UNWIND first + second AS step
  WITH step[0] AS n, sum(step[1]) AS received
  ORDER BY received DESC, n.seq LIMIT $walk_notes
  MATCH (n)-[:FOUND_BY]->(i)
  RETURN collect(i) AS walked
}
// The pool: Seed flags of each note.
CALL (by_vector, by_text, by_title, by_term, by_time, by_neighbour, walked) {
  UNWIND [[1, by_vector], [2, by_text], [4, by_term], [8, by_title], [16, by_time], [32, by_neighbour],
    [64, walked]] AS source
  UNWIND source[1] AS i
  WITH i, sum(source[0]) AS seeds
  //: when filtered
  MATCH (i)<-[:FOUND_BY]-(n)
  WITH i, seeds, CASE WHEN seeds <> 64 OR ({{filter}}) THEN 1 ELSE 0 END AS pool
  //: otherwise
  WITH i, seeds, 1 AS pool
  //: end
  WITH i, seeds, pool, i.place AS place
  RETURN collect({index: i, seeds: seeds, pool: pool, place: place}) AS seeded,
    collect(DISTINCT left(place, 48)) AS sessions
}
// The neighbours of notes from other sources than the walk. Without a filter, those of by_neighbour were already read
// with their anchors.
CALL (seeded) {
  UNWIND seeded AS note
  WITH note.index AS centre, note.seeds AS seeds, note.place AS place
  //: when filtered
  WHERE seeds <> 64 AND place IS NOT NULL
  //: otherwise
  WHERE seeds % 64 > 0 AND seeds % 64 < 32 AND place IS NOT NULL
  //: end
  {{neighbours}}
  RETURN collect({centre: centre, before: before, after: after}) AS lone
}
// Notes from the walk alone need their next note only if the session has two of them.
CALL (seeded) {
  UNWIND seeded AS note
  WITH note.index AS centre, note.place AS place WHERE note.seeds = 64 AND place IS NOT NULL
  WITH left(place, 48) AS session, collect({centre: centre, place: place}) AS walked
  WHERE size(walked) > 1
  UNWIND walked AS note
  WITH session, note.centre AS centre, note.place AS place
  CALL (session, place) {
    MATCH (i:Index)
    WHERE i.place > place AND i.place < session + '~' AND {{place_visible}}
    RETURN i.seq AS after ORDER BY i.place LIMIT 1
  }
  RETURN collect([centre.seq, after]) AS steps
}
// The rows: all these notes.
CALL (seeded, lone, anchored) {
  CALL (seeded, lone, anchored) {
    UNWIND seeded AS note
    RETURN note.index AS i, note.seeds AS seeds, note.pool AS pool
    UNION ALL
    UNWIND lone AS run
    UNWIND run.before[..$window] + run.after[..$window] AS i
    RETURN i, 0 AS seeds, 0 AS pool
    //: when filtered
    //: otherwise
    UNION ALL
    UNWIND anchored AS run
    UNWIND run.before[..2 * $window] + run.after[..2 * $window] AS i
    RETURN i, 0 AS seeds, 0 AS pool
    //: end
  }
  WITH i, sum(seeds) AS seeds, max(pool) AS pool
  RETURN collect(i) AS indexes, collect(seeds) AS seeds, collect(pool) AS pool
}
{{note_values}}
// Word counts of the rows: from the postings above, else from the index nodes.
CALL (postings, indexes) {
  UNWIND postings AS posting
  WITH posting WHERE posting[1] IN indexes
  RETURN collect([posting[1].seq, posting[0], posting[2]]) AS posted
}
CALL (df, read, indexes) {
  UNWIND [at IN range(0, size(df) - 1) WHERE df[at] > 0 AND NOT at IN read] AS at
  UNWIND indexes AS i
  WITH at, i, $words[at] AS word WHERE i.words CONTAINS word
  RETURN collect([i.seq, at, {{word_count}}]) AS unposted
}
// Runs of neighbours, and sums of sessions.
CALL (lone, anchored) {
  UNWIND
    //: when filtered
    lone
    //: otherwise
    lone + anchored
    //: end
    AS run
  RETURN collect([i IN reverse(run.before) + [run.centre] + run.after | i.seq]) AS runs
}
CALL (postings, sessions) {
  UNWIND postings AS posting
  WITH posting[0] AS at, left(posting[1].place, 48) AS session, posting[2] AS tf, sessions
  WHERE session IN sessions
  WITH session, at, sum(tf) AS tf
  RETURN collect([substring(session, 32), at, tf]) AS session_counts
}
CALL (sessions) {
  UNWIND sessions AS session
  //: when as_of
  MATCH (i:Index)
  WHERE i.place > session AND i.place < session + '~' AND {{place_visible}}
  WITH substring(session, 32) AS name, sum(i.length) AS length
  //: otherwise
  MATCH (x:Session {scope: $scope, name: substring(session, 32)})
  WITH x.name AS name, x.tokens AS length
  //: end
  RETURN collect([name, length]) AS session_lengths
}
RETURN notes, tokens, df, fields, seeds, pool, links, terms, ends, posted + unposted AS counts, runs + steps AS runs,
  session_counts, session_lengths,
  {{scope_flags}}
