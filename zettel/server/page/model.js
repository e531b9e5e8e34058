// The graph as values: notes with a place, what joins them, and what of it a moment knew.

const GOLDEN = Math.PI * (3 - Math.sqrt(5));  // turns of a sunflower: even, whatever the number
const SPREAD = 26;  // pixels between notes before anything pulls
const PULL = { NEXT: 0.25, RELATES: 0.6, MENTIONS: 0.8, SUPERSEDES: 1, UPDATES: 0.8, CONTRADICTS: 0.8, DERIVED_FROM: 0.6, TERM: 0.18 };
const TERM_NOTES = 10;  // a keyword of more notes binds none of them
const TOPIC_NOTES = 3;  // a keyword of fewer names no place
const TOPICS = 60;
const CLOSE = 2.2;  // zoom, the most that a few notes are brought near
export const FARTHEST = 0.08;  // zoom
export const MARGIN = 46;  // pixels around what is to be seen

const millis = moment => moment ? Date.parse(moment) : null;

/** Nodes and edges of an answer of the server. `before` (by id) keeps notes where they lay. */
export function model(answer, before = new Map()) {
  const nodes = answer.notes.map(note => ({
    note, id: note.id, kind: note.kind, x: 0, y: 0, tx: 0, ty: 0, r: 0, degree: 0, edges: [], name: "", said: undefined,
    from: millis(note.valid_from), to: millis(note.valid_to), at: millis(note.occurred_at),
  }));
  const found = new Map(nodes.map(node => [node.id, node]));
  const edges = [];
  const join = (a, b, type, weight) => {
    if (!a || !b || a === b) return;
    const edge = { a, b, type, weight };
    a.edges.push(edge);
    b.edges.push(edge);
    edges.push(edge);
  };
  for (const link of answer.links) join(found.get(link.source), found.get(link.target), link.type, link.weight);
  const sessions = inSessions(nodes);
  for (const notes of sessions) for (let i = 1; i < notes.length; i++) join(notes[i - 1], notes[i], "NEXT", 1);
  for (const node of nodes) {
    node.degree = node.edges.filter(edge => edge.type !== "NEXT").length;
    node.r = 3.4 + 1.5 * Math.sqrt(node.degree);
  }
  place(nodes, sessions, before);
  return { nodes, edges, found, keywords: shared(nodes) };
}

/** Notes of each session in the order in which they were said; an undated one after the last dated one before it. */
function inSessions(nodes) {
  const sessions = new Map();
  for (const node of [...nodes].sort((a, b) => a.note.seq - b.note.seq)) {
    const name = node.note.session;
    if (name === null || node.kind !== "episodic") continue;
    if (!sessions.has(name)) sessions.set(name, { notes: [], latest: -Infinity });
    const session = sessions.get(name);
    node.said = node.at ?? session.latest;
    session.latest = Math.max(session.latest, node.said);
    session.notes.push(node);
  }
  return [...sessions.values()].map(({ notes }) => notes.sort((a, b) => a.said - b.said || a.note.seq - b.note.seq));
}

/** Keywords that several notes share, with these notes. */
function shared(nodes) {
  const holders = new Map();
  for (const node of nodes) for (const word of node.note.keywords) {
    const key = word.toLowerCase();
    if (!holders.has(key)) holders.set(key, { text: word, nodes: [] });
    holders.get(key).nodes.push(node);
  }
  return [...holders.values()].filter(one => one.nodes.length > 1);
}

/** A start that is the same for the same notes: sessions around the middle, each a heap; what has none lies around them. */
function place(nodes, sessions, before) {
  const heaps = [...sessions, ...nodes.filter(node => node.said === undefined).map(node => [node])];
  let count = 0;
  heaps.forEach((heap, nth) => {
    const away = SPREAD * Math.sqrt(count + heap.length / 2), turn = nth * GOLDEN;
    count += heap.length;
    heap.forEach((node, inner) => {
      const known = before.get(node.id), near = SPREAD * 0.8 * Math.sqrt(inner), angle = inner * GOLDEN;
      node.x = node.tx = known?.x ?? Math.cos(turn) * away + Math.cos(angle) * near;
      node.y = node.ty = known?.y ?? Math.sin(turn) * away + Math.sin(angle) * near;
    });
  });
}

/** What the worker is to lay out: positions (n) in a round world, pairs (2m) and how strongly each pulls (m). The map is that
    world, `stretch` times as wide and as much lower. */
export function springs({ nodes, edges, keywords }, stretch) {
  const rows = new Map(nodes.map((node, row) => [node, row])), ends = [], pull = [];
  const add = (a, b, force) => {
    ends.push(rows.get(a), rows.get(b));
    pull.push(force);
  };
  for (const { a, b, type, weight } of edges) {
    add(a, b, PULL[type] * weight / Math.sqrt(Math.min(a.edges.length, b.edges.length)));
  }
  for (const { nodes: holders } of keywords) {
    if (holders.length <= TERM_NOTES) for (let i = 1; i < holders.length; i++) add(holders[i - 1], holders[i], PULL.TERM);
  }
  return {
    x: Float32Array.from(nodes, node => node.x / stretch), y: Float32Array.from(nodes, node => node.y * stretch),
    ends: Int32Array.from(ends), pull: Float32Array.from(pull),
  };
}

/** Words that name a part of the map, best first: shared by several notes that lie near each other. */
export function topics({ nodes, keywords }) {
  const named = [];
  for (const { text, nodes: holders } of keywords) {
    if (holders.length < TOPIC_NOTES || holders.length > Math.max(8, nodes.length / 12)) continue;
    const middle = axis => holders.map(node => node[axis]).sort((a, b) => a - b)[holders.length >> 1];
    const x = middle("tx"), y = middle("ty");
    const apart = holders.reduce((sum, node) => sum + Math.hypot(node.tx - x, node.ty - y), 0) / holders.length;
    named.push({ text, x, y, holders, worth: holders.length / (60 + apart) });
  }
  return named.sort((a, b) => b.worth - a.worth || (a.text < b.text ? -1 : 1)).slice(0, TOPICS);
}

/** Whether a note of an answer is not valid any more. */
export const hasEnded = note => note.valid_to !== null && millis(note.valid_to) <= Date.now();

/** Whether a note is there at a moment (milliseconds; null: now), and whether it still held. */
export const isThere = (node, moment) => moment === null || node.from === null || node.from <= moment;
export const holds = (node, moment) => node.to === null || node.to > (moment ?? Date.now());

/** Where a camera is, {x, y, k}, when these notes fill a canvas. */
export function fitting(nodes, width, height) {
  let left = Infinity, right = -Infinity, top = Infinity, low = -Infinity;
  for (const { tx, ty } of nodes) {
    [left, right] = [Math.min(left, tx), Math.max(right, tx)];
    [top, low] = [Math.min(top, ty), Math.max(low, ty)];
  }
  const k = Math.min((width - 2 * MARGIN) / (right - left + 1), (height - 2 * MARGIN) / (low - top + 1), CLOSE);
  return { x: (left + right) / 2, y: (top + low) / 2, k: Math.max(k, FARTHEST) };
}

/** The nearest note from a place in a direction, those straight ahead before those aside; null where none lies. */
export function next(nodes, from, [dx, dy]) {
  let best = null, least = Infinity;
  for (const node of nodes) {
    const gx = node.x - from.x, gy = node.y - from.y, ahead = gx * dx + gy * dy, aside = Math.abs(gx * dy) + Math.abs(gy * dx);
    if (ahead <= 0 || aside > 1.5 * ahead || ahead + 2 * aside >= least) continue;
    [best, least] = [node, ahead + 2 * aside];
  }
  return best;
}
