// A note's history: every version as what it changed, word by word, and the way back to it.

import { may } from "./access.js";
import * as api from "./api.js";
import { brief, button, confirmed, doing, h, when } from "./dom.js";
import { named } from "./names.js";
import { diff } from "./words.js";

const WORDED = new Set(["content", "title", "caption", "context"]);
const LINKS_TOLD = 4;

const nothing = value => value === null || value === undefined || value === ""
  || (typeof value === "object" && !Object.keys(value).length);
const plain = value => typeof value === "string" ? value : JSON.stringify(value);

/** The versions that count, of revisions in order: those that no later one that counts took back. */
export function live(revisions) {
  const gone = new Set(), kept = [];
  for (const revision of [...revisions].reverse()) {
    if (gone.has(revision.version)) continue;
    kept.push(revision);
    for (const version of revision.undoes) gone.add(version);
  }
  return kept.reverse();
}

/** The fields and links that revisions give, in order. */
export function state(revisions) {
  const fields = {}, links = new Map();
  for (const revision of live(revisions)) {
    Object.assign(fields, revision.change);
    for (const link of revision.links) links.set(`${link.source} ${link.type} ${link.target}`, link);
  }
  return { fields, links };
}

export async function showHistory(list, note, again) {
  let revisions;
  try {
    ({ revisions } = await api.history(note.id));
  } catch (error) {
    list.replaceChildren(h("li", { class: "wrong" }, error.message));
    return;
  }
  const states = revisions.map((_, place) => state(revisions.slice(0, place + 1)));
  const items = revisions.map((revision, place) => version(revision, states[place - 1], states[place], note,
    may("write") && back(revisions, place) && (() => revert(note, revision, again))));
  list.replaceChildren(...items.reverse());
  for (const place of list.querySelectorAll("[data-name]")) named(place);
}

/** Whether going back to a version changes anything: whether a later one counts. */
const back = (revisions, place) => live(revisions).some(one => one.version > revisions[place].version
  && (Object.keys(one.change).length || one.links.length || one.undoes.length));

function version(revision, before, after, note, goBack) {
  const { cause } = revision, because = cause.note && cause.note !== note.id;
  const author = [cause.by === "user" ? "a person" : cause.by, cause.model, cause.prompt].filter(Boolean).join(" · ");
  return h("li", { class: revision.live ? "" : "undone", "data-version": revision.version },
    h("header", {},
      h("b", {}, `Version ${revision.version}`), h("span", { class: "soft" }, author), when(revision.recorded_at, { withTime: true }),
      !revision.live && h("span", { class: "chip" }, "taken back"),
      goBack && button("Go back to this", goBack, { class: "small" })),
    (cause.reason || because) && h("p", { class: "soft" },
      cause.reason, because && [cause.reason ? ", because of " : "because of ", link(cause.note)]),
    revision.undoes.length > 0 && h("p", { class: "soft" }, `takes back version ${revision.undoes.join(", ")}`),
    before ? [...fields(before.fields, after.fields), ...linksChanged(before.links, after.links, note.id)]
      : h("p", { class: "soft" }, "As it arrived: ", brief(after.fields.content ?? "", 140)));
}

const link = id => h("a", { href: `#/note/${id}`, "data-name": id }, id);

function* fields(before, after) {
  for (const name of [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()) {
    const old = before[name], now = after[name];
    if (JSON.stringify(old) === JSON.stringify(now) || (nothing(old) && nothing(now))) continue;
    yield h("div", { class: "change" }, h("h4", {}, name.replaceAll("_", " ")), h("p", {}, ...changed(name, old, now).filter(Boolean)));
  }
}

const SIGNS = { "-": "del", "+": "ins" };

function changed(name, old, now) {
  if (Array.isArray(old) && Array.isArray(now)) {
    const part = (tag, some) => some.map(one => [h(tag, { class: "term" }, plain(one)), " "]);
    const went = old.filter(one => !now.includes(one)), came = now.filter(one => !old.includes(one));
    return went.length + came.length ? [part("del", went), part("ins", came)] : ["in another order"];
  }
  if (WORDED.has(name)) return diff(old ?? "", now ?? "").map(([sign, piece]) => sign === "=" ? piece : h(SIGNS[sign], {}, piece));
  return [!nothing(old) && h("del", {}, plain(old)), !nothing(old) && !nothing(now) && " → ", !nothing(now) && h("ins", {}, plain(now))];
}

function* linksChanged(before, after, id) {
  const some = (one, other) => [...one].filter(([key]) => !other.has(key)).map(([, value]) => value);
  for (const [tag, links] of [["del", some(before, after)], ["ins", some(after, before)]]) {
    if (!links.length) continue;
    const line = one => h("li", {}, h(tag, {}, one.type.toLowerCase().replace("_", " ")), " ",
      link(one.source === id ? one.target : one.source), one.reason && h("small", {}, one.reason));
    const rest = links.length - LINKS_TOLD;
    yield h("ul", { class: "links" }, links.slice(0, LINKS_TOLD).map(line), rest > 0 && h("li", { class: "soft" }, `and ${rest} more`));
  }
}

async function revert(note, revision, again) {
  const sure = await confirmed({
    title: `Back to version ${revision.version}?`, does: "Go back",
    text: "What came after it is taken back. Nothing is lost: it all stays in the history, and going back is a version of its own.",
  });
  if (sure === null) return;
  await doing(() => api.act(note.id, "revert", { version: revision.version }), `It is as in version ${revision.version} again.`, again);
}
