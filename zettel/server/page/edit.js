// Changes by a person: add a note, edit it, pin it, delete it.

import { scopeName } from "./access.js";
import * as api from "./api.js";
import { brief, button, by, confirmed, count, doing, h, toast } from "./dom.js";

const PINNED = "pinned";  // the tag of notes that belong in every prompt
const EMPTY = { content: "", title: null, tags: [], importance: null };

export const isPinned = note => note.tags.includes(PINNED);
const withoutPin = tags => tags.filter(tag => tag !== PINNED);
const withPin = (tags, pinned) => [...withoutPin(tags), ...(pinned ? [PINNED] : [])];

/** Ask for a new note and store it. `added(id)` is called afterwards. */
export async function add(added) {
  const answer = await written({ title: `Add a note to ${scopeName(api.scope())}`, does: "Add", note: EMPTY }, ({ tags = [], ...fields }) =>
    api.add({ ...fields, tags: withoutPin(tags), pinned: tags.includes(PINNED) }));
  if (answer === null) return;
  toast("The note is stored.");
  await added(answer.id);
}

/** Change text, title, tags, importance and pin of a note, as one new version. */
export async function edit(id, again) {
  try {
    const note = await api.note(id);  // the panel may show an older version
    const answer = await written({ title: "Edit the note", does: "Save", note }, fields =>
      Object.keys(fields).length ? api.update(id, fields) : null);
    if (answer === null) return;
    toast(`The note is at version ${answer.version}. Its history can revert it.`);
  } catch (error) {
    return toast(error.message, { wrong: true });
  }
  await again();
}

export const pin = (id, pinned, again) => doing(async () => {
  const { tags } = await api.note(id);
  await api.update(id, { tags: withPin(tags, pinned) });
}, pinned ? "The note is pinned: it belongs in every prompt." : "The note is not pinned.", again);

/** Delete a note, after a confirmation that lists what is deleted. `removed(id)` is called afterwards. */
export async function remove(note, links, removed) {
  try {
    const sure = await confirmed({ title: "Delete this note?", does: "Delete", text: await losses(note, links) });
    if (sure === null) return;
    const { deleted } = await api.remove(note.id);
    toast(`${count(deleted, "note")} deleted.`);
  } catch (error) {
    return toast(error.message, { wrong: true });
  }
  await removed(note.id);
}

/** What `delete` destroys with a note. The event of a fact that was derived from it remains. */
async function losses(note, links) {
  const { revisions } = await api.history(note.id), events = note.event_ids.length;
  const derived = links.filter(link => link.type === "DERIVED_FROM" && link.target === note.id).length;
  const lost = [
    `its history (${count(note.version, "version")})`, links.length > 0 && `its ${count(links.length, "link")}`,
    revisions[0].change.kind === "episodic" && (events > 1 ? `the ${events} events that it came from` : "the event that it came from"),
    note.parts > 1 && `all ${note.parts} parts of that event`,
    note.merged_into && "the note that it was merged into",
    derived > 0 ? `everything derived from it (at least ${count(derived, "note")})` : "everything derived from it",
  ].filter(Boolean);
  return [h("q", {}, brief(note.content, 160)), ` is deleted with ${lost.slice(0, -1).join(", ")} and ${lost.at(-1)}. `,
    h("b", {}, "Nobody can restore it."), " To hide a note and keep it, archive it."];
}

/** Show the form of a note. Gives the answer of `save(changed fields)`, or null if the form was cancelled.

    An error of `save` is shown in the form, which stays open with all that was typed. */
function written({ title, does, note }, save) {
  const dialog = by("editor"), wrong = h("p", { class: "wrong", role: "alert" });
  const text = h("textarea", { rows: 7, required: true, autofocus: true }, note.content);
  const line = (value, attributes) => h("input", { type: "text", autocomplete: "off", value, ...attributes });
  const called = line(note.title ?? ""), tags = line(withoutPin(note.tags).join(", "));
  const importance = line(note.importance, { type: "number", min: 0, max: 1, step: "any", required: note.importance !== null });
  const pinned = h("input", { type: "checkbox", checked: isPinned(note) });
  const values = () => {
    const typed = [...new Set(tags.value.split(",").map(tag => tag.trim()).filter(Boolean))];
    return {
      content: text.value, title: called.value.trim() || null, tags: withPin(typed, pinned.checked || typed.includes(PINNED)),
      importance: importance.value === "" ? null : importance.valueAsNumber,
    };
  };
  const before = values();
  const changes = () => Object.fromEntries(Object.entries(values())
    .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name])));
  let answer = null, saving = false;
  const cancel = async () => {
    if (saving) return;
    const ask = { title: "Discard your changes?", does: "Discard", text: "Nothing that you typed in this form is stored." };
    if (!Object.keys(changes()).length || await confirmed(ask) !== null) dialog.close();
  };
  const submit = async event => {
    event.preventDefault();
    if (saving) return;
    saving = true;
    wrong.replaceChildren();
    try {
      answer = await save(changes());
      dialog.close();
    } catch (error) {
      wrong.replaceChildren(error.message);
    } finally {
      saving = false;
    }
  };
  const field = (label, input) => h("label", { class: "field" }, label, input);
  dialog.replaceChildren(h("form", { onsubmit: submit }, h("h2", { id: "editor-title" }, title),
    field("Text", text), field("Title (optional)", called), field("Tags, separated by commas", tags),
    field(note.importance === null ? "Importance, from 0 to 1 (optional)" : "Importance, from 0 to 1", importance),
    h("label", { class: "check" }, pinned, "Pin it: it belongs in every prompt"), wrong,
    h("div", { class: "row" }, button("Cancel", cancel), h("button", { class: "first" }, does))));
  dialog.oncancel = event => {
    event.preventDefault();
    cancel();
  };
  dialog.showModal();
  return new Promise(resolve => dialog.addEventListener("close", () => resolve(answer), { once: true }));
}
