// One note: what it says, how it is linked, how it came to be what it is, and what can be done about it.

import { may } from "./access.js";
import * as api from "./api.js";
import { button, by, confirmed, count, doing, h, icon, nameOf, sign, terms, when } from "./dom.js";
import { edit, isPinned, pin, remove } from "./edit.js";
import { text } from "./hits.js";
import { showHistory } from "./history.js";
import { hasEnded } from "./model.js";
import { named } from "./names.js";

const SAID = {  // how a link reads from its source, and from its target
  RELATES: ["related", "related"], MENTIONS: ["mentions", "mentioned by"], SUPERSEDES: ["replaces", "replaced by"],
  UPDATES: ["updates", "updated by"],
  CONTRADICTS: ["contradicts", "contradicted by"], DERIVED_FROM: ["made from", "led to"],
};
const LINKS_SHOWN = 8;

let wanted = null;

/** Show a note in the panel. `stems` are what the question asked for, `changed()` is called after a change,
    `removed(id)` after it was deleted. */
export async function showNote(id, { stems, changed, removed, around }) {
  const panel = by("note"), other = wanted !== id;
  wanted = id;
  panel.hidden = false;
  if (other) panel.replaceChildren(close(), h("p", { class: "soft waiting", role: "status" }, "Reading…"));
  let note, links;
  try {
    [note, { links }] = await Promise.all([api.note(id), api.links(id)]);
  } catch (error) {
    if (wanted === id) panel.replaceChildren(close(), h("p", { class: "wrong", role: "alert" }, error.message));
    return;
  }
  if (wanted !== id) return;
  const focused = other || panel.contains(document.activeElement);  // who is in the panel stays there when it is made anew
  const again = () => changed().then(() => showNote(id, { stems, changed, removed, around }));
  panel.replaceChildren(close(), card(note, stems), ...banners(note, again), actions(note, links, { again, removed, around }),
    linked(note, links), past(note, again));
  panel.setAttribute("aria-label", `Note: ${nameOf(note)}`);
  if (focused) panel.focus({ preventScroll: true });
}

export function hideNote() {
  wanted = null;
  by("note").hidden = true;
  by("note").replaceChildren();
}

const close = () => h("a", { href: "#/", class: "close round", "aria-label": "Close the note", title: "Close (Esc)" }, icon("close"));

const plain = value => typeof value === "string" ? value : JSON.stringify(value);

function card(note, stems) {
  const metadata = Object.entries(note.metadata).map(([name, value]) => `${name} = ${plain(value)}`);
  const facts = [
    note.context && note.context !== note.content && ["context", note.context],
    note.keywords.length && ["keywords", terms(note.keywords)],
    note.tags.length && ["tags", terms(note.tags)],
    note.session && ["session", note.session],
    note.valid_from && note.valid_from !== note.occurred_at && ["true since", when(note.valid_from)],
    note.valid_to && ["true until", when(note.valid_to)],
    note.parts > 1 && ["part", `${note.part + 1} of ${note.parts}`],
    note.trust < 1 && ["trust", note.trust.toFixed(2)],
    metadata.length && ["metadata", metadata.join(", ")],
    ["recorded", when(note.recorded_at, { withTime: true })],
  ].filter(Boolean);
  return h("article", { class: "zettel" },
    h("header", {}, h("span", { class: "kind" }, sign(note.kind), note.kind), h("b", {}, note.speaker ?? ""),
      note.occurred_at && when(note.occurred_at, { withTime: true })),
    note.title && h("h2", {}, note.title),
    h("p", { class: "says" }, text(note.content, stems)),
    h("dl", {}, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    h("p", { class: "soft id" }, h("code", {}, note.id), ` version ${note.version}`));
}

/** What is special about a note, and the way out of it. */
function banners(note, again) {
  const said = [], say = (kind, told, ...more) => said.push(h("div", { class: `banner ${kind}` }, h("p", {}, told), more));
  const back = () => doing(() => api.act(note.id, "unarchive"), "It is back from the archive.", again);
  const restore = may("write") && button("Bring it back", back);
  if (note.quarantined !== null) {
    const reason = note.quarantined || "No reason was given.";
    say("warn", [h("b", {}, "In quarantine. "), reason], may("write") && button("Release", () => release(note, again)));
  } else if (note.merged_into) say("", ["Merged: ", h("a", { href: `#/note/${note.merged_into}` }, "another note"), " speaks for it."]);
  else if (note.archived) say("", note.faded ? "Faded: nobody needed it for long." : "In the archive.", restore);
  if (note.valid_to) say("", [hasEnded(note) ? "No longer true since " : "True until ", when(note.valid_to), "."]);
  if (note.flags.length) say("warn", [h("b", {}, "Looks like instructions to a model: "), note.flags.join(", ")]);
  return said;
}

function actions(note, links, { again, removed, around }) {
  const pinned = isPinned(note);
  const archive = () => doing(() => api.act(note.id, "archive"), "It is in the archive.", again);
  return h("div", { class: "row actions" },
    !note.archived && button("Graph around it", () => around(note.id)),
    may("write") && [
      !note.archived && button("Edit…", () => edit(note.id, again), { id: "edit", title: "Edit the note (e)" }),
      !note.archived && button(pinned ? "Unpin" : "Pin", () => pin(note.id, !pinned, again)),
      note.quarantined === null && button("Quarantine…", () => quarantine(note, again)),
      !note.archived && button("Archive", archive),
    ],
    may("admin") && button("Delete…", () => remove(note, links, removed)));
}

/** Take a note out of play, if somebody who is asked says so. */
export async function quarantine(note, again) {
  const reason = await confirmed({
    title: "Take this note out of play?", does: "Quarantine", field: "Why (optional)",
    text: "No search finds it and no job looks at it, and what rests on it is taken back. It can be released again.",
  });
  if (reason !== null) await doing(() => api.act(note.id, "quarantine", { reason }), "It is in quarantine.", again);
}

/** Bring a note back from quarantine. */
export const release = (note, again) =>
  doing(() => api.act(note.id, "release"), "It is released, with what its quarantine took back.", again);

function linked(note, links) {
  const sorted = [...links].sort((a, b) => (a.type === "RELATES") - (b.type === "RELATES") || b.weight - a.weight);
  const list = h("ul", { class: "links" }), rest = sorted.slice(LINKS_SHOWN);
  const line = link => {
    const out = link.source === note.id, id = out ? link.target : link.source;
    return h("li", { class: link.type.toLowerCase() }, h("span", { class: "type" }, SAID[link.type][out ? 0 : 1]),
      h("a", { href: `#/note/${id}`, "data-name": id }, id), link.reason && h("small", {}, link.reason));
  };
  const add = some => {
    const lines = some.map(line);
    list.append(...lines);
    for (const one of lines) named(one.querySelector("a"));
  };
  const more = ({ target }) => {
    target.remove();
    add(rest);
  };
  add(sorted.slice(0, LINKS_SHOWN));
  return h("section", {}, h("h3", {}, links.length ? count(links.length, "link") : "No links yet"), list,
    rest.length > 0 && button(count(rest.length, "more link"), more, { class: "quiet" }));
}

/** The history, read when it is opened; at once if there is something to see. */
function past(note, again) {
  const list = h("ol", { class: "history" }), title = h("h3", {}, `History: ${count(note.version, "version")}`);
  const section = h("details", { class: "past" }, h("summary", {}, title), list);
  section.addEventListener("toggle", () => showHistory(list, note, again), { once: true });
  section.open = note.version > 1;
  return section;
}
