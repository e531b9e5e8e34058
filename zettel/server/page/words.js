// Words: what of a text a question asked for, and what changed between two texts.

const COMMON = new Set(("a an and any are as at be been but by can could did do does for from had has have her his how i if in into is it its "
  + "me my no not of on or our she so than that the their them then there they this to was we were what when where which who whom whose why "
  + "will with would you your").split(" "));
const ENDINGS = ["ings", "ing", "ies", "ied", "ers", "ed", "es", "er", "ly", "s", "y"];
const SHORTEST_STEM = 3;  // letters; less would make strangers alike
const MOST_STEPS = 4_000_000;  // cells of a comparison: more takes too long to look at as well

/** A word without its ending, lower case: near enough to tell people what they asked for. */
export function stem(word) {
  const low = word.toLowerCase();
  const ending = ENDINGS.find(one => low.endsWith(one) && low.length - one.length >= SHORTEST_STEM);
  const rest = ending ? low.slice(0, -ending.length) : low;
  return rest.length > SHORTEST_STEM && rest.endsWith("e") ? rest.slice(0, -1) : rest;
}

const words = text => text.match(/[\p{L}\p{N}]+/gu) ?? [];

/** The stems of what a question asks for. */
export function asked(question) {
  return new Set(words(question).filter(word => !COMMON.has(word.toLowerCase())).map(stem));
}

/** A text in pieces `[piece, whether a word of the question]`. */
export function marked(text, stems) {
  const pieces = [];
  for (const [piece] of text.matchAll(/[\p{L}\p{N}]+|[^\p{L}\p{N}]+/gu)) {
    const is = stems.has(stem(piece)) && !COMMON.has(piece.toLowerCase());
    const last = pieces.at(-1);
    if (last && last[1] === is) last[0] += piece;
    else pieces.push([piece, is]);
  }
  return pieces;
}

/** Those of the terms that hold a word of the question. */
export const matching = (terms, stems) => terms.filter(term => words(term).some(word => stems.has(stem(word))));

/** What became of a text, word by word: `[sign, piece]` with sign "-" (went), "+" (came) or "=" (stayed). */
export function diff(before, after) {
  const cut = text => text.match(/\s+|[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu) ?? [];
  const a = cut(before), b = cut(after);
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const middle = _longest(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return _joined([...a.slice(0, start).map(one => ["=", one]), ...middle, ...a.slice(a.length - end).map(one => ["=", one])]);
}

/** By the longest common subsequence. */
function _longest(a, b) {
  if (a.length * b.length > MOST_STEPS) return [["-", a.join("")], ["+", b.join("")]];
  const wide = b.length + 1, best = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      best[i * wide + j] = a[i] === b[j] ? best[(i + 1) * wide + j + 1] + 1
        : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
    }
  }
  const steps = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      steps.push(["=", a[i++]]);
      j++;
    } else if (j === b.length || (i < a.length && best[(i + 1) * wide + j] >= best[i * wide + j + 1])) steps.push(["-", a[i++]]);
    else steps.push(["+", b[j++]]);
  }
  return steps;
}

/** Neighbours of one sign as one piece; a lone space between two changes belongs to both. */
function _joined(steps) {
  const runs = [];
  let went = "", came = "";
  const flush = () => {
    if (went) runs.push(["-", went]);
    if (came) runs.push(["+", came]);
    went = came = "";
  };
  steps.forEach(([sign, piece], place) => {
    const changes = steps[place + 1] !== undefined && steps[place + 1][0] !== "=";
    if (sign === "-") went += piece;
    else if (sign === "+") came += piece;
    else if (/^\s+$/.test(piece) && went && came && changes) {
      went += piece;
      came += piece;
    } else {
      flush();
      const last = runs.at(-1);
      if (last?.[0] === "=") last[1] += piece;
      else runs.push(["=", piece]);
    }
  });
  flush();
  return runs;
}
