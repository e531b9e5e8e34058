// What notes are called, wherever only their id is at hand.

import * as api from "./api.js";
import { nameOf } from "./dom.js";

const names = new Map();
let known = () => undefined;

/** `find(id)` gives a note that is at hand already. */
export function namesBy(find) {
  known = find;
}

export const forgetNames = () => names.clear();

/** Put a note's name in the place of its id (`data-name`), as soon as it is known. */
export async function named(place) {
  const id = place.dataset.name, there = known(id);
  if (there) names.set(id, nameOf(there));
  if (!names.has(id)) {
    try {
      names.set(id, nameOf(await api.note(id)));
    } catch {
      return;  // deleted meanwhile: its id is all there is to say
    }
  }
  place.replaceChildren(names.get(id));
}
