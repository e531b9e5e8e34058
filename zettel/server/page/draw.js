// The graph on a canvas: only what is in sight. Without a GPU, many lines are quick as one path of hairs, and many notes one by one.

import { holds } from "./model.js";

const LINES = {  // width, dash
  NEXT: [1, []], RELATES: [1, []], MENTIONS: [1.2, [5, 3]], SUPERSEDES: [2, []], UPDATES: [2, [8, 3]], CONTRADICTS: [1.8, [2, 4]], DERIVED_FROM: [1.4, []],
};
const CAPTION_ZOOM = 1.5;  // nearer than this, notes say what they are about; farther, the places do
const GROWTH = 0.5;  // how little notes grow as one comes near: 0 as the map does, 1 not at all
const RANK = 10;  // pixels, the least radius of a hit's number
const MANY_LINES = 400, MANY_NOTES = 900;  // in sight: beyond, they are drawn the quick way
const HAIR = 0.95;  // pixels of the device: lines up to one are drawn a hundred times as fast as wider ones
const MOST_CAPTIONS = 46, CAPTION = 34;  // at once; characters
const NAMES = ["card", "ink", "soft", "rule", "accent", "episodic", "semantic", "procedural", "insight",
  "NEXT", "RELATES", "MENTIONS", "SUPERSEDES", "UPDATES", "CONTRADICTS", "DERIVED_FROM"];

/** The colours of the style sheet, light or dark as it is now. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  return { ...Object.fromEntries(NAMES.map(name => [name, style.getPropertyValue(`--${name.toLowerCase().replace("_", "-")}`).trim()])),
    serif: style.getPropertyValue("--serif"), sans: style.getPropertyValue("--sans") };
}

/** Add a note's sign to the path: a circle, a square, a triangle or a diamond. */
function outline(context, node, r) {
  const { x, y, kind } = node;
  if (kind === "semantic") context.rect(x - r * 0.88, y - r * 0.88, r * 1.76, r * 1.76);
  else if (kind === "procedural") polygon(context, [[x, y - r * 1.2], [x + r * 1.1, y + r * 0.8], [x - r * 1.1, y + r * 0.8]]);
  else if (kind === "insight") polygon(context, [[x, y - r * 1.3], [x + r * 1.15, y], [x, y + r * 1.3], [x - r * 1.15, y]]);
  else {
    context.moveTo(x + r, y);
    context.arc(x, y, r, 0, 2 * Math.PI);
  }
}

function polygon(context, points) {
  points.forEach(([x, y], nth) => nth ? context.lineTo(x, y) : context.moveTo(x, y));
  context.closePath();
}

/**
 * Draw one frame. `scene` has nodes and edges, `view` {x, y, k} the middle and the zoom, `width`, `height` and `ratio` of the
 * canvas, `shown(node)`, `lit` (a Set of nodes, or null: all), `selected`, `focused`, `ranks` (Map of id to place), `topics`.
 */
export function draw(context, scene, colour) {
  const { view, width, height, ratio } = scene, { k } = view;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.setTransform(ratio * k, 0, 0, ratio * k, ratio * (width / 2 - view.x * k), ratio * (height / 2 - view.y * k));
  const half = { x: width / 2 / k + 20, y: height / 2 / k + 20 };
  const inSight = node => Math.abs(node.x - view.x) < half.x && Math.abs(node.y - view.y) < half.y;
  const seen = scene.nodes.filter(node => scene.shown(node) && inSight(node));
  const size = node => node.r * (k > 1 ? k ** -GROWTH : Math.max(1, 0.72 / k));
  lines(context, scene, colour, half);
  notes(context, scene, colour, seen, size);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  words(context, scene, colour, seen, size);
}

function lines(context, scene, colour, half) {
  const { view, lit } = scene, apart = (a, b, middle, reach) => Math.max(a, b) < middle - reach || Math.min(a, b) > middle + reach;
  const paths = new Map();
  for (const edge of scene.edges) {
    const { a, b } = edge;
    if (apart(a.x, b.x, view.x, half.x) || apart(a.y, b.y, view.y, half.y) || !scene.shown(a) || !scene.shown(b)) continue;
    const bright = lit !== null && (a === scene.center || b === scene.center || (scene.center === null && lit.has(a) && lit.has(b)));
    const key = bright ? `+${edge.type}` : edge.type;
    if (!paths.has(key)) paths.set(key, { path: new Path2D(), count: 0 });
    const some = paths.get(key);
    some.path.moveTo(a.x, a.y);
    some.path.lineTo(b.x, b.y);
    some.count++;
  }
  for (const [key, { path, count }] of [...paths].sort(([a], [b]) => (a[0] === "+") - (b[0] === "+"))) {
    const bright = key[0] === "+", type = bright ? key.slice(1) : key, [thick, dash] = LINES[type], many = count > MANY_LINES;
    const width = (bright ? thick + 0.6 : thick) / Math.max(view.k, 0.5);
    context.strokeStyle = colour[type];
    context.globalAlpha = bright ? 0.9 : (type === "NEXT" ? 0.3 : 0.7) * (lit === null ? 1 : 0.16);
    context.lineWidth = many ? Math.min(width, HAIR / view.k / scene.ratio) : width;
    context.setLineDash(many ? [] : dash.map(one => one / view.k));
    context.stroke(path);
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

function notes(context, scene, colour, seen, size) {
  const { lit, view } = scene;
  const rim = seen.length > MANY_NOTES ? 0 : 0.8 / Math.max(view.k, 0.6);
  const disc = (node, r, tint) => {
    context.beginPath();
    outline(context, node, r);
    context.fillStyle = tint;
    context.fill();
  };
  for (const bright of lit === null ? [true] : [false, true]) {
    for (const node of seen) {
      if (lit !== null && lit.has(node) !== bright) continue;
      const r = size(node);
      context.globalAlpha = 1;
      if (rim && bright) disc(node, r + rim, colour.card);
      context.globalAlpha = bright ? 1 : 0.2;
      disc(node, r, colour[node.kind]);
      if (!holds(node, scene.moment)) disc(node, r * 0.65, colour.card);
    }
  }
  context.globalAlpha = 1;
  for (const [node, name, gap] of [[scene.selected, colour.accent, 4], [scene.focused, colour.ink, 7]]) {
    if (!node || !scene.shown(node)) continue;
    context.beginPath();
    context.arc(node.x, node.y, size(node) + gap / view.k, 0, 2 * Math.PI);
    context.strokeStyle = name;
    context.lineWidth = 2 / view.k;
    context.stroke();
  }
}

/** Numbers on hits, captions of notes and names of places, none on top of another. */
function words(context, scene, colour, seen, size) {
  const { view, width, height, lit } = scene;
  const at = node => [(node.x - view.x) * view.k + width / 2, (node.y - view.y) * view.k + height / 2];
  const taken = [];
  context.textBaseline = "middle";
  context.textAlign = "center";
  for (const node of seen) {
    const rank = scene.ranks.get(node.id);
    if (rank === undefined) continue;
    const [x, y] = at(node), r = Math.max(RANK, size(node) * view.k + 1);
    taken.push([x - r, y - r, x + r, y + r]);
    context.beginPath();
    context.arc(x, y, r, 0, 2 * Math.PI);
    context.fillStyle = colour.accent;
    context.fill();
    context.fillStyle = colour.card;
    context.font = `700 11px ${colour.sans}`;
    context.fillText(rank, x, y + 0.5);
  }
  const put = (text, middle, y, font, tint, pad) => {
    context.font = font;
    const wide = context.measureText(text).width / 2 + pad, x = Math.max(wide, Math.min(width - wide, middle));
    const box = [x - wide, y - 9, x + wide, y + 9];
    if (taken.some(one => one[0] < box[2] && box[0] < one[2] && one[1] < box[3] && box[1] < one[3])) return false;
    taken.push(box);
    context.lineWidth = 4;
    context.lineJoin = "round";
    context.strokeStyle = colour.card;
    context.strokeText(text, x, y);
    context.fillStyle = tint;
    context.fillText(text, x, y);
    return true;
  };
  const caption = node => {
    const [x, y] = at(node);
    return put(node.name, x, y + size(node) * view.k + 11, `12px ${colour.sans}`, colour.ink, 4);
  };
  for (const node of [scene.focused, scene.selected]) if (node && seen.includes(node)) caption(node);
  if (lit !== null || view.k >= CAPTION_ZOOM) {
    const wanted = (lit === null ? seen : seen.filter(node => lit.has(node))).sort((a, b) => b.degree - a.degree);
    let left = MOST_CAPTIONS;
    for (const node of wanted) if (node !== scene.selected && node !== scene.focused && caption(node) && --left === 0) break;
  }
  if (lit !== null) return;
  for (const topic of scene.topics) {
    const [x, y] = at(topic), big = Math.min(20, 12 + 1.2 * Math.sqrt(topic.holders.length) + view.k);
    if (x < 0 || y < 0 || x > width || y > height || topic.holders.filter(scene.shown).length < 2) continue;
    put(topic.text, x, y, `italic 600 ${big}px ${colour.serif}`, colour.ink, 10);
  }
}

export const shortName = text => text.length > CAPTION ? `${text.slice(0, CAPTION - 1).trimEnd()}…` : text;
