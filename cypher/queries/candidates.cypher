// What a question is asked of, by the rules of zettel.search.pool, in one statement: the ways of seeding one by one, the
// neighbours in time, the walk, and then everything about the chosen notes in columns.
//: when newer
CYPHER 25
//: end
MATCH (s:Scope {scope: $scope})
// Statistics of what is visible.
//: when as_of
CALL (s) {
  MATCH (i:Index)
  WHERE i.scope = $scope AND i.id IS NOT NULL AND {{found}}
  RETURN count(i) AS notes, sum(i.length) AS tokens
}
CALL (s) {
  UNWIND range(0, size($words) - 1) AS at
  CALL (at) {
    CALL db.index.fulltext.queryNodes('zettel_words', $words[at]) YIELD node AS i
    WHERE {{found}}
    RETURN count(i) AS held
  }
  WITH at, held ORDER BY at
  RETURN collect(held) AS df
}
WITH s, notes, tokens, df
//: otherwise
CALL (s) {
  UNWIND range(0, size($words) - 1) AS at
  OPTIONAL MATCH (w:Word {scope: $scope, name: $words[at]})
  WITH at, coalesce(w.notes, 0) AS held ORDER BY at
  RETURN collect(held) AS df
}
WITH s, s.notes AS notes, s.tokens AS tokens, df
//: end
// TEXT: where the rarest of the words stand, as far as they can be afforded.
CALL (df) {
  UNWIND range(0, size($words) - 1) AS at
  WITH at, df[at] AS held WHERE held > 0
  ORDER BY held, at
  WITH collect({at: at, held: held}) AS rarest
  RETURN reduce(taken = {spent: 0, words: []}, word IN rarest |
    CASE WHEN size(taken.words) = 0 OR taken.spent + word.held <= $budget
      THEN {spent: taken.spent + word.held, words: taken.words + word.at} ELSE taken END).words AS read
}
CALL (read) {
  UNWIND read AS at
  WITH at, $words[at] AS word
  CALL (word) {
    CALL db.index.fulltext.queryNodes('zettel_words', word) YIELD node AS i
    WHERE {{found}}
    RETURN i
  }
  RETURN collect([at, i, {{times}}]) AS postings
}
CALL (postings, df, notes, tokens) {
  WITH postings, [held IN df | log(1 + (notes - held + 0.5) / (held + 0.5))] AS idf,
    $k1 * (1 - $b) AS base, $k1 * $b / CASE WHEN tokens > notes THEN toFloat(tokens) / notes ELSE 1.0 END AS slope
  UNWIND postings AS posting
  WITH posting[1] AS i, idf[posting[0]] AS weight, posting[2] AS tf, base, slope
  WITH i, sum(weight * tf * ($k1 + 1) / (tf + base + slope * i.length)) AS score
  //: when filtered
  MATCH (n:Note)-[:FOUND_BY]->(i)
  WHERE {{allowed}}
  //: end
  WITH i, score ORDER BY score DESC, i.seq LIMIT $pool
  MATCH (n)-[:FOUND_BY]->(i)
  WITH n, score, i.seq AS seq ORDER BY score DESC, seq
  RETURN collect(n) AS by_text
}
// VECTOR
//: when vector
CALL (s) {
  {{nearest}}
  MATCH (v)<-[:HAS_VECTOR]-(n)
  WITH n, cosine, v.seq AS seq ORDER BY cosine DESC, seq
  RETURN collect(n) AS by_vector
}
//: end
//: when indexed
CALL (s) {
  {{nearest_indexed}}
  MATCH (v)<-[:HAS_VECTOR]-(n)
  WITH n, cosine, v.seq AS seq ORDER BY cosine DESC, seq
  RETURN collect(n) AS by_vector
}
//: end
//: when wordless
WITH *, [] AS by_vector
//: end
// TITLE
CALL (s) {
  UNWIND $names AS name
  MATCH (:Term {scope: $scope, name: name})<-[:TITLED]-(n:Note)
  WHERE {{passing}}
  WITH DISTINCT n ORDER BY n.seq LIMIT $pool
  RETURN collect(n) AS by_title
}
// TERM
CALL (s) {
  UNWIND $names AS name
  MATCH (t:Term {scope: $scope, name: name})
  WITH t, {{holders}} AS df WHERE df > 0
  ORDER BY df, t.name
  WITH collect({term: t, df: df}) AS rarest
  RETURN [one IN rarest | one.term] AS named,
    reduce(taken = {spent: 0, terms: []}, one IN rarest | CASE WHEN taken.spent + one.df <= $pool
      THEN {spent: taken.spent + one.df, terms: taken.terms + one.term}
      ELSE {spent: taken.spent + one.df, terms: taken.terms} END).terms AS taken
}
CALL (taken) {
  UNWIND taken AS t
  MATCH (t)<-[:HAS_TERM]-(n)
  WHERE {{passing}}
  RETURN collect(DISTINCT n) AS by_term
}
// TIME
CALL (s) {
  UNWIND $times AS stretch
  MATCH (n:Note)
  WHERE n.scope = $scope AND n.occurred_at >= stretch.start AND n.occurred_at < stretch.end AND {{passing}}
  WITH DISTINCT n ORDER BY n.seq LIMIT $pool
  RETURN collect(n) AS by_time
}
// NEIGHBOUR
CALL (by_vector, by_text) {
  UNWIND by_vector[..$anchors] + by_text[..$anchors] AS anchor
  WITH DISTINCT anchor
  MATCH (anchor)-[:FOUND_BY]->(centre)
  WITH centre, centre.place AS place WHERE place IS NOT NULL
  {{beside}}
  UNWIND [centre] + before[..$window] + after[..$window] AS i
  WITH DISTINCT i
  MATCH (n)-[:FOUND_BY]->(i)
  WHERE {{passing}}
  RETURN collect(n) AS around
}
// WALK
CALL (by_vector, by_text, by_title, by_term) {
  UNWIND [at IN range(0, size(by_vector[..$walk_seeds]) - 1) | [by_vector[at], 1.0 / (1 + at)]]
    + [at IN range(0, size(by_text[..$walk_seeds]) - 1) | [by_text[at], 1.0 / (1 + at)]]
    + [n IN by_title | [n, 1.0]] + [n IN by_term | [n, 1.0 / size(by_term)]] AS start
  WITH start[0] AS n, sum(start[1]) AS share
  RETURN collect([n, share]) AS starts, collect(n) AS starting
}
CALL (starts, starting) {
  WITH starts AS leaving, starting
  {{hop}}
  WITH reached, led ORDER BY led DESC, reached.seq
  RETURN collect([reached, led]) AS first
}
CALL (first, starting) {
  WITH first[..$walk_beam] AS leaving, starting
  {{hop}}
  RETURN collect([reached, led]) AS second
}
CALL (first, second) {
  UNWIND first + second AS step
  WITH step[0] AS n, sum(step[1]) AS led
  ORDER BY led DESC, n.seq LIMIT $walk_notes
  RETURN collect(n) AS walked
}
// The pool, what stands beside those of it that more than the walk found, and of the others what comes next.
CALL (by_vector, by_text, by_title, by_term, by_time, around, walked) {
  UNWIND [[1, by_vector], [2, by_text], [4, by_term], [8, by_title], [16, by_time], [32, around], [64, walked]] AS way
  UNWIND way[1] AS n
  WITH n, sum(way[0]) AS seeds
  //: when filtered
  WITH n, seeds, CASE WHEN seeds <> 64 OR ({{allowed}}) THEN 1 ELSE 0 END AS pool
  //: otherwise
  WITH n, seeds, 1 AS pool
  //: end
  MATCH (n)-[:FOUND_BY]->(i)
  WITH i, seeds, pool, i.place AS place
  RETURN collect([i, seeds, pool, place]) AS seeded, collect(DISTINCT left(place, 48)) AS sessions
}
CALL (seeded) {
  UNWIND seeded AS one
  WITH one[0] AS centre, one[3] AS place WHERE one[1] <> 64 AND place IS NOT NULL
  {{beside}}
  RETURN collect([i IN reverse(before) + [centre] + after | i.seq]) AS runs,
    collect(before[..$window] + after[..$window]) AS beside
}
CALL (seeded) {
  UNWIND seeded AS one
  WITH one[0] AS centre, one[3] AS place WHERE one[1] = 64 AND place IS NOT NULL
  CALL (place) {
    MATCH (i:Index)
    WHERE i.place > place AND i.place < left(place, 48) + '~' AND {{placed}}
    RETURN i.seq AS after ORDER BY i.place LIMIT 1
  }
  RETURN collect([centre.seq, after]) AS steps
}
// Everything about them.
CALL (seeded, beside) {
  CALL (seeded, beside) {
    UNWIND seeded AS one
    RETURN one[0] AS i, one[1] AS seeds, one[2] AS pool
    UNION ALL
    UNWIND beside AS some
    UNWIND some AS i
    RETURN i, 0 AS seeds, 0 AS pool
  }
  WITH i, sum(seeds) AS seeds, max(pool) AS pool
  MATCH (n)-[:FOUND_BY]->(i)
  //: when wordless
  WITH i, seeds, pool, n, null AS v
  //: otherwise
  OPTIONAL MATCH (n)-[:HAS_VECTOR]->(v) WHERE v.space = $space AND v.shown
  //: end
  RETURN collect(n) AS rows, collect(i) AS found,
    {row: collect(i.row), length: collect(i.length), seeds: collect(seeds), pool: collect(pool),
      code: collect(coalesce(v.code, ''))} AS columns,
    collect(CASE WHEN pool = 1 THEN n END) AS pooled, collect(CASE WHEN i.superseded THEN n END) AS superseded
}
// Which of the words they hold: as far as they were read above, that is known.
CALL (postings, found) {
  UNWIND postings AS posting
  WITH posting WHERE posting[1] IN found
  RETURN collect([posting[1].seq, posting[0], posting[2]]) AS held
}
CALL (df, read, found) {
  UNWIND [at IN range(0, size(df) - 1) WHERE df[at] > 0 AND NOT at IN read] AS at
  UNWIND found AS i
  WITH at, i, $words[at] AS word WHERE i.words CONTAINS word
  RETURN collect([i.seq, at, {{times}}]) AS held_too
}
CALL (superseded) {
  UNWIND superseded AS n
  MATCH (newer)-[how:SUPERSEDES]->(n)
  //: when as_of
  WHERE newer.valid_from IS NULL OR newer.valid_from <= $moment
  //: end
  WITH n, min(coalesce(MICROS(newer.valid_from), MICROS(how.recorded_at))) AS since
  RETURN collect([n.seq, since]) AS replaced
}
CALL (rows) {
  UNWIND rows AS n
  MATCH (n)-[l:{{links}}]->(target)
  WHERE target IN rows
  RETURN collect([n.seq, target.seq, type(l), l.weight]) AS edges
}
CALL (pooled, named) {
  UNWIND pooled AS n
  WITH n, n.seq AS seq
  MATCH (n)-[:HAS_TERM]->(t)
  WITH t, collect(seq) AS held
  WITH t, held, t IN named AS asked
  WHERE asked OR size(held) > 1
  WITH t, held, asked, {{holders}} AS df
  WHERE asked OR (df > 1 AND df <= $rare_term_df)
  RETURN collect([t.name, df, asked, held]) AS terms
}
CALL (postings, sessions) {
  UNWIND postings AS posting
  WITH posting[0] AS at, left(posting[1].place, 48) AS session, posting[2] AS tf, sessions
  WHERE session IN sessions
  WITH session, at, sum(tf) AS tf
  RETURN collect([substring(session, 32), at, tf]) AS told
}
CALL (sessions) {
  UNWIND sessions AS session
  //: when as_of
  MATCH (i:Index)
  WHERE i.place > session AND i.place < session + '~' AND {{placed}}
  WITH substring(session, 32) AS name, sum(i.length) AS length
  //: otherwise
  MATCH (told:Session {scope: $scope, name: substring(session, 32)})
  WITH told.name AS name, told.tokens AS length
  //: end
  RETURN collect([name, length]) AS lengths
}
RETURN notes, tokens, df, columns, held + held_too AS counts, replaced, runs + steps AS runs, edges, terms, told, lengths,
  EXISTS { MATCH (u:Usage) WHERE u.scope = $scope AND u.note IS NOT NULL } AS used
