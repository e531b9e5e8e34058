// Where notes lie: springs along links, every note pushing those near it away, in a worker so that the page never waits.
// After Fruchterman and Reingold (1991), with their grid: who is far away does not push.

const REST = 30;  // pixels between two linked notes, at zoom 1
const FAR = 5 * REST;  // beyond this nobody pushes anybody
const GRAVITY = 0.014;  // pull towards the middle, so that what has no links stays in sight
const ROUNDS = 120;  // after that nothing moves far
const FIRST_STEP = 1.6 * REST, LAST_STEP = 0.4;  // pixels that a note moves at most, in the first round and the last
const TELL_EVERY = 60;  // milliseconds
const ROW = 1 << 15;  // cells between one row of the grid and the next
const AHEAD = [0, 1, ROW - 1, ROW, ROW + 1];  // a cell, and those of its neighbours that come after it

/** Notes by the cell of the grid that they lie in. */
function cells(x, y) {
  const found = new Map();
  for (let a = 0; a < x.length; a++) {
    const cell = Math.floor(x[a] / FAR) + ROW * Math.floor(y[a] / FAR);
    if (found.has(cell)) found.get(cell).push(a);
    else found.set(cell, [a]);
  }
  return found;
}

/** One round: moves `x` and `y` (n) by the forces between notes, those along `ends` (2m, pairs) with `pull` (m). */
function round(x, y, ends, pull, step) {
  const n = x.length, dx = new Float32Array(n), dy = new Float32Array(n), grid = cells(x, y);
  for (const [cell, here] of grid) for (const gap of AHEAD) {
    const there = grid.get(cell + gap) ?? [];
    for (let i = 0; i < here.length; i++) {
      const a = here[i];
      for (let j = gap ? 0 : i + 1; j < there.length; j++) {
        const b = there[j], gx = x[a] - x[b], gy = y[a] - y[b], squared = gx * gx + gy * gy;
        if (squared > FAR * FAR) continue;
        const push = REST * REST / Math.max(squared, 1);
        dx[a] += gx * push; dy[a] += gy * push;
        dx[b] -= gx * push; dy[b] -= gy * push;
      }
    }
  }
  for (let m = 0; m < pull.length; m++) {
    const a = ends[2 * m], b = ends[2 * m + 1], gx = x[a] - x[b], gy = y[a] - y[b];
    const force = pull[m] * Math.hypot(gx, gy) / REST;
    dx[a] -= gx * force; dy[a] -= gy * force;
    dx[b] += gx * force; dy[b] += gy * force;
  }
  for (let a = 0; a < n; a++) {
    const fx = dx[a] - GRAVITY * REST * x[a], fy = dy[a] - GRAVITY * REST * y[a], length = Math.hypot(fx, fy);
    const share = length > step ? step / length : 1;
    x[a] += fx * share;
    y[a] += fy * share;
  }
}

onmessage = ({ data: { run, x, y, ends, pull } }) => {
  let told = performance.now();
  for (let nth = 0; nth < ROUNDS; nth++) {
    round(x, y, ends, pull, FIRST_STEP * (LAST_STEP / FIRST_STEP) ** (nth / (ROUNDS - 1)));
    const last = nth === ROUNDS - 1;
    if (!last && performance.now() - told < TELL_EVERY) continue;
    told = performance.now();
    postMessage({ run, x, y, last });
  }
};
