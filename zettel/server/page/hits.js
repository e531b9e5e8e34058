// What a search found, and why: parts of the score as bars, the words that matched, the way that led there.

import { bar, h, nameOf, number, sign, when } from "./dom.js";
import { hasEnded } from "./model.js";
import { asked, marked, matching } from "./words.js";

/** Features by what they are about, with names for people; what stands nowhere here is told by its own name. */
const PARTS = {
  meaning: { vector: "the note itself" },
  words: { text: "the note itself" },
  turns: { windows: "the turns beside it" },
  who: { speaker: "the speaker that was named", role: "the user or the assistant" },
  when: { time: "the time that was named" },
  form: { length: "its length", form: "the kind of note" },
  question: { situation: "an average note for this question" },
};
const SEEDS = {
  vector: "by meaning", text: "by words", title: "by title", term: "by a term", time: "by date", neighbour: "next to a good one",
  walk: "along links", archive: "from the archive",
};

/** The features of a hit in groups `[name, sum, [[label, value]]]`, those that tell most first. */
export function grouped(features) {
  const groups = Object.entries(PARTS).map(([name, labels]) =>
    [name, Object.keys(labels).filter(one => one in features).map(one => [labels[one], features[one]])]);
  const known = new Set(Object.values(PARTS).flatMap(Object.keys));
  const others = Object.entries(features).filter(([name]) => !known.has(name)).map(([name, value]) => [name.replaceAll("_", " "), value]);
  return [...groups, ["ranking", others]].filter(([, parts]) => parts.length)
    .map(([name, parts]) =>
      [name, parts.reduce((sum, [, value]) => sum + value, 0), parts.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]))])
    .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
}

const SURE = "How surely this is an answer, 0 to 1";
const signed = value => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

/** A bar that grows from the middle: what speaks for a note to the right, what speaks against it to the left. */
function scale(value, most) {
  const made = h("span", { class: `scale ${value < 0 ? "against" : "for"}`, "aria-hidden": "true" }, h("span"));
  made.firstChild.style.width = `${Math.min(1, Math.abs(value) / most) * 50}%`;
  return made;
}

export function text(content, stems) {
  return marked(content, stems).map(([piece, is]) => is ? h("mark", {}, piece) : piece);
}

const onTheWay = (step, nth) => [nth > 0 && h("span", { class: "over" }, step.over || "→"),
  step.note ? h("a", { href: `#/note/${step.note}` }, step.name) : h("em", {}, step.name)];

function why(hit, terms) {
  const { local_score, graph_score, seeds, path, time, strength, scorer } = hit.why, groups = grouped(hit.why.features);
  const most = Math.max(...groups.flatMap(([, sum, parts]) => [sum, ...parts.map(([, value]) => value)]).map(Math.abs), 1e-9);
  const row = (label, value, kind) =>
    h("div", { class: `part ${kind}` }, h("span", {}, label), scale(value, most), h("b", {}, signed(value)));
  return h("div", { class: "why" },
    h("div", { class: "parts" }, groups.map(([name, sum, parts]) => [row(name, sum, "sum"),
      parts.length > 1 || parts[0][0] !== name ? parts.map(([label, value]) => row(label, value, "one")) : null])),
    h("dl", {},
      h("dt", {}, "score"),
      h("dd", {}, `local ${local_score.toFixed(2)}, graph ${(100 * graph_score).toFixed(1)} %`),
      seeds.length > 0 && [h("dt", {}, "found"), h("dd", {}, seeds.map(one => SEEDS[one] ?? one).join(", "))],
      terms.length > 0 && [h("dt", {}, "matched"), h("dd", { class: "terms" }, terms.map(term => h("span", { class: "term" }, term)))],
      path.length > 0 && [h("dt", {}, "way"), h("dd", { class: "way" }, path.map(onTheWay))],
      time && [h("dt", {}, "time"), h("dd", {}, time)],
      strength !== null && [h("dt", {}, "faint"),
        h("dd", {}, `ranked by ${Math.round(strength * 100)} % of its score: nobody needed it for long`)],
      h("dt", {}, "ranked by"), h("dd", {}, scorer)));
}

/** The passage of a hit, with an ellipsis where its note has more text. */
export function shown({ passage, note }) {
  const whole = note.content.trim(), part = passage.trim() || whole, lines = part.split("\n");
  return `${whole.startsWith(lines[0]) ? "" : "…"}${part}${whole.endsWith(lines.at(-1)) ? "" : "…"}`;
}

/** One hit as an item of the list. `open(id)` shows its note. */
export function item(hit, place, question) {
  const { note } = hit, stems = asked(question), called = new Set([...note.keywords, ...note.tags, note.title ?? ""]);
  const terms = matching([...called], stems), details = h("details", {}, h("summary", {}, "Why?"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(why(hit, terms));
  });
  const past = hasEnded(note);
  return h("li", { class: `hit${past ? " past" : ""}`, "data-note": note.id },
    h("a", { href: `#/note/${note.id}`, class: "slip", "aria-label": `${place}. ${nameOf(note)}` },
      h("span", { class: "place", "aria-hidden": "true" }, number(place)),
      h("span", { class: "by" }, sign(note.kind), h("b", {}, note.speaker ?? note.title ?? note.kind),
        note.occurred_at && when(note.occurred_at)),
      h("span", { class: "says" }, text(shown(hit), stems))),
    h("div", { class: "foot" },
      bar(hit.score, { class: "score", role: "img", "aria-label": `score ${hit.score.toFixed(2)} of 1`, title: SURE }),
      h("b", { "aria-hidden": "true" }, hit.score.toFixed(2)),
      past && h("span", { class: "chip", title: "It is not valid any more" }, hit.why.superseded_by ? "replaced" : "ended"),
      hit.why.superseded_by && h("a", { class: "chip", href: `#/note/${hit.why.superseded_by}` }, "by this"),
      note.flags.length > 0 && h("span", { class: "chip warn" }, "looks like instructions"),
      terms.slice(0, 3).map(term => h("span", { class: "term" }, term)), details));
}
