// A picture of more of the graph than is in sight. While the map is dragged it is moved instead of drawn anew: quick,
// whatever there is to draw, and without a GPU too.

import { draw } from "./draw.js";

const BORDER = 0.3;  // share of the canvas that it reaches beyond each edge

export class Picture {
  #canvas = document.createElement("canvas");
  #from; #size;

  constructor(scene, colour) {
    const { view, width, height, ratio } = scene;
    this.#from = { ...view };
    this.#size = { width, height, ratio };
    const wide = width * (1 + 2 * BORDER), high = height * (1 + 2 * BORDER);
    this.#canvas.width = wide * ratio;
    this.#canvas.height = high * ratio;
    draw(this.#canvas.getContext("2d"), { ...scene, width: wide, height: high }, colour);
  }

  /** Put it where the camera looks now, which is as near as it was; whether it reaches that far. */
  put(context, view) {
    const { width, height, ratio } = this.#size, { x, y, k } = this.#from;
    const right = (x - view.x) * k, down = (y - view.y) * k;
    if (Math.abs(right) > width * BORDER || Math.abs(down) > height * BORDER) return false;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, width * ratio, height * ratio);
    context.drawImage(this.#canvas, (right - width * BORDER) * ratio, (down - height * BORDER) * ratio);
    return true;
  }
}
