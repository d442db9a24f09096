// @ts-check
/// <reference lib="dom" />
// The layer bar: one cell for each layer; a block is drawn with the mouse or a finger, or moved by its two edges, which
// are sliders for the keyboard.

import { edgeOf, range, withBlock } from "./plans.js";

/** @import { Block } from "./plans.js" */

/**
 * @param {string} tag
 * @param {string} className
 * @param {Element} parent
 * @returns {HTMLElement}
 */
function add(tag, className, parent) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  parent.append(element);
  return element;
}

/** A bar of layers on which blocks are edited. */
export class LayerBar {
  /** Layers of the model. */
  #n = 0;
  /** @type {Block[]} */
  #blocks = [];
  /** The block that is edited, or the place where the next one begins. */
  #active = 0;
  /** @type {HTMLElement[]} */
  #cells = [];
  #drawing = false;

  /**
   * @param {HTMLElement} root An empty element.
   * @param {string} label What the bar belongs to.
   * @param {(blocks: Block[]) => void} onChange Called with the blocks after each edit.
   */
  constructor(root, label, onChange) {
    this.onChange = onChange;
    this.root = root;
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", `${label}: layers`);
    this.says = add("span", "says", root);
    this.says.setAttribute("aria-hidden", "true");
    this.row = add("div", "cells", root);
    this.row.setAttribute("aria-hidden", "true");
    this.ticks = add("div", "ticks", root);
    this.ticks.setAttribute("aria-hidden", "true");
    this.thumbs = ["first", "last"].map((which) => {
      const thumb = add("div", "thumb", root);
      thumb.tabIndex = 0;
      thumb.setAttribute("role", "slider");
      thumb.title =
        "Arrow keys move this edge, with Shift the whole block; Delete takes the block away";
      thumb.setAttribute("aria-label", `${label}: ${which} layer of the block`);
      return thumb;
    });
    this.#listen();
  }

  /** The block that is edited, if there is one. */
  get active() {
    return this.#blocks[this.#active];
  }

  /**
   * Shows a plan.
   *
   * @param {number[]} times How often each layer runs.
   * @param {Block[] | null} blocks Null if the plan cannot be drawn as blocks: an edit then begins a new plan.
   */
  show(times, blocks) {
    if (times.length !== this.#n) this.#rebuild(times.length);
    const was = this.active;
    this.#blocks = blocks ?? [];
    const same = this.#blocks.findIndex(({ start, end }) =>
      was && start < was.end && end > was.start
    );
    this.#active = same >= 0 ? same : Math.max(0, this.#blocks.length - 1);
    this.#paint(times);
  }

  /**
   * Puts a block in place of the active one.
   *
   * @param {Block} block
   */
  set(block) {
    const others = this.#blocks.filter((_, i) => i !== this.#active);
    this.#change(withBlock(others, block), block);
  }

  /**
   * Puts one more block.
   *
   * @param {Block} block
   */
  add(block) {
    this.#change(withBlock(this.#blocks, block), block);
  }

  /** Takes the active block away. */
  remove() {
    const blocks = this.#blocks.filter((_, i) => i !== this.#active);
    this.#change(blocks, blocks.at(-1));
  }

  /**
   * @param {Block[]} blocks
   * @param {Block | undefined} active
   */
  #change(blocks, active) {
    this.#blocks = blocks;
    this.#active = active ? blocks.indexOf(active) : 0;
    this.#paint();
    this.onChange(blocks);
  }

  /** @param {number} n */
  #rebuild(n) {
    this.#n = n;
    const edge = edgeOf(n);
    this.row.style.setProperty("--gap", n > 64 ? "0px" : n > 32 ? "1px" : "2px");
    this.#cells = Array.from({ length: n }, (_, il) => {
      const cell = document.createElement("i");
      cell.classList.toggle("edge", il < edge || il >= n - edge);
      return cell;
    });
    this.row.replaceChildren(...this.#cells);
    const step = [1, 2, 4, 8, 16, 32].find((step) => n / step <= 8) ?? 64;
    const at = [];
    for (let il = 0; il < n - step / 2; il += step) at.push(il);
    at.push(n - 1);
    this.ticks.replaceChildren(...at.map((il) => {
      const tick = document.createElement("span");
      tick.textContent = String(il);
      tick.style.left = `${100 * (il + 0.5) / n}%`;
      return tick;
    }));
  }

  /** @param {number[]} [times] If not given, the blocks say it. */
  #paint(times) {
    const active = this.active;
    const of = (/** @type {number} */ il) =>
      this.#blocks.find(({ start, end }) => il >= start && il < end);
    this.#cells.forEach((cell, il) => {
      const n = times?.[il] ?? of(il)?.count ?? 1;
      cell.classList.toggle("many", n > 1);
      cell.classList.toggle("skipped", n === 0);
      cell.classList.toggle("active", !active || of(il) === active);
    });
    const middle = this.#n >> 1;
    const first = active ? active.start : middle;
    const last = active ? active.end - 1 : middle;
    this.#value(0, first, 0, last, first);
    this.#value(1, last, first, this.#n - 1, last + 1);
    this.#say(active ? first : undefined, last + 1, true);
  }

  /**
   * @param {number} which
   * @param {number} now
   * @param {number} min
   * @param {number} max
   * @param {number} edge Where it stands, in layers from the left.
   */
  #value(which, now, min, max, edge) {
    const thumb = this.thumbs[which];
    if (!thumb) return;
    thumb.setAttribute("aria-valuenow", String(now));
    thumb.setAttribute("aria-valuemin", String(min));
    thumb.setAttribute("aria-valuemax", String(max));
    thumb.setAttribute("aria-valuetext", this.active ? `layer ${now}` : "no block");
    thumb.classList.toggle("idle", !this.active);
    thumb.style.left = `${100 * edge / this.#n}%`;
  }

  /**
   * The text above the bar.
   *
   * @param {number | undefined} start Undefined for nothing.
   * @param {number} end
   * @param {boolean} isBlock
   */
  #say(start, end, isBlock) {
    if (start === undefined) {
      this.says.textContent = "";
      return;
    }
    const times = isBlock && this.active ? ` ×${this.active.count}` : "";
    this.says.textContent = range(start, end) + times;
    this.says.classList.toggle("block", isBlock);
    const at = (start + end) / 2 / this.#n;
    this.says.style.left = `${100 * at}%`;
    this.says.style.translate = `${-100 * at}% 0`; // stays inside at either end
  }

  /**
   * The layer under a place on the screen.
   *
   * @param {PointerEvent} event
   */
  #layerAt(event) {
    const { left, width } = this.row.getBoundingClientRect();
    const il = Math.floor((event.clientX - left) / width * this.#n);
    return Math.max(0, Math.min(this.#n - 1, il));
  }

  #listen() {
    /** @type {number | undefined} */
    let from;
    /** @type {HTMLElement | undefined} */
    let pointed;
    const point = (/** @type {HTMLElement | undefined} */ cell) => {
      pointed?.classList.remove("pointed");
      pointed = cell;
      cell?.classList.add("pointed");
    };
    this.row.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || this.#n === 0) return;
      this.row.setPointerCapture(event.pointerId);
      from = this.#layerAt(event);
      const hit = this.#blocks.findIndex(({ start, end }) =>
        from !== undefined && from >= start && from < end
      );
      if (hit >= 0 && hit !== this.#active) {
        this.#active = hit;
        this.#paint();
        this.onChange(this.#blocks);
      }
    });
    this.row.addEventListener("pointermove", (event) => {
      if (this.#n === 0) return;
      const il = this.#layerAt(event);
      if (from === undefined) {
        point(this.#cells[il]);
        this.#say(il, il + 1, false);
      } else if (il !== from || this.#drawing) {
        this.#drawing = true;
        this.#draw(from, il);
      }
    });
    this.row.addEventListener("pointerup", (event) => {
      if (from === undefined) return;
      const il = this.#layerAt(event);
      const inside = this.active && il >= this.active.start && il < this.active.end;
      if (this.#drawing || !inside) this.#draw(from, il);
      from = undefined;
      this.#drawing = false;
    });
    this.row.addEventListener("pointercancel", () => {
      from = undefined;
      this.#drawing = false;
    });
    this.row.addEventListener("pointerleave", () => {
      point(undefined);
      if (from === undefined) this.#say(this.active?.start, this.active?.end ?? 0, true);
    });
    this.thumbs.forEach((thumb, which) => {
      thumb.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        thumb.setPointerCapture(event.pointerId);
        thumb.focus();
        event.preventDefault();
      });
      thumb.addEventListener("pointermove", (event) => {
        if (thumb.hasPointerCapture(event.pointerId)) this.#move(which, this.#layerAt(event));
      });
      thumb.addEventListener("keydown", (event) => {
        const now = Number(thumb.getAttribute("aria-valuenow"));
        const page = Math.max(2, this.#n >> 3);
        const to = ({
          ArrowLeft: now - 1,
          ArrowDown: now - 1,
          ArrowRight: now + 1,
          ArrowUp: now + 1,
          PageDown: now - page,
          PageUp: now + page,
          Home: 0,
          End: this.#n - 1,
        })[event.key];
        if (event.key === "Delete" || event.key === "Backspace") this.remove();
        else if (to !== undefined && event.shiftKey) this.#shift(to - now);
        else if (to !== undefined) this.#move(which, to);
        else return;
        event.preventDefault();
      });
    });
  }

  /**
   * @param {number} a
   * @param {number} b
   */
  #draw(a, b) {
    const count = this.active?.count ?? 2;
    const block = { start: Math.min(a, b), end: Math.max(a, b) + 1, count };
    const { active } = this;
    if (active && active.start === block.start && active.end === block.end) return;
    this.set(block);
  }

  /**
   * Moves an edge of the block; without one, begins one.
   *
   * @param {number} which 0 for the first layer, 1 for the last.
   * @param {number} to
   */
  #move(which, to) {
    if (this.#n === 0) return;
    const middle = this.#n >> 1;
    const { start, end, count } = this.active ?? { start: middle, end: middle + 1, count: 2 };
    if (which === 0) this.set({ start: Math.max(0, Math.min(to, end - 1)), end, count });
    else this.set({ start, end: Math.min(this.#n, Math.max(to + 1, start + 1)), count });
  }

  /**
   * Moves the whole block.
   *
   * @param {number} by
   */
  #shift(by) {
    if (!this.active) return;
    const { start, end, count } = this.active;
    const step = Math.max(-start, Math.min(this.#n - end, by));
    this.set({ start: start + step, end: end + step, count });
  }
}
