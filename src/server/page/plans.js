// @ts-check
// Plans as the server describes them, and plans as blocks on the layer bar. The grammar stays on the server.

/**
 * @typedef {object} PlanAnswer The server's description of a plan.
 * @property {number} n_layer
 * @property {number} n_layer_eff
 * @property {{ repeat_start: number, repeat_end: number, repeat_count: number }[]} runs
 * @property {string[]} advisories
 * @property {number} [compute_ratio] Work for a token, to that without a plan.
 * @property {number} [kv_bytes] Cache of a context.
 * @property {number} [recurrent_bytes]
 */

/**
 * @typedef {object} Block Layers `start..end-1`, run `count` times in all.
 * @property {number} start
 * @property {number} end
 * @property {number} count
 */

/**
 * The blocks of a plan that runs every layer in order, some of them again in place.
 *
 * @param {PlanAnswer} plan
 * @returns {Block[] | null} Null for a plan that is more than such blocks.
 */
export function blocksOf({ runs, n_layer }) {
  let next = 0;
  const blocks = [];
  for (const { repeat_start, repeat_end, repeat_count } of runs) {
    if (repeat_start !== next) return null;
    next = repeat_end;
    if (repeat_count > 1) {
      blocks.push({ start: repeat_start, end: repeat_end, count: repeat_count });
    }
  }
  return next === n_layer ? blocks : null;
}

/**
 * Blocks as text.
 *
 * @param {readonly Block[]} blocks
 * @returns {string}
 */
export function specOf(blocks) {
  if (blocks.length === 0) return "none";
  return blocks.map(({ start, end, count }) =>
    count === 2 ? `${start},${end}` : `${start}-${end}x${count - 1}`
  ).join(";");
}

/**
 * How often each layer runs.
 *
 * @param {PlanAnswer} plan
 * @returns {number[]}
 */
export function timesOf({ runs, n_layer }) {
  const times = new Array(n_layer).fill(0);
  for (const { repeat_start, repeat_end, repeat_count } of runs) {
    for (let il = repeat_start; il < repeat_end; il++) times[il] += repeat_count;
  }
  return times;
}

/**
 * Puts a block among others; those that it overlaps give way.
 *
 * @param {readonly Block[]} blocks
 * @param {Block} block
 * @returns {Block[]} In the order of their layers.
 */
export function withBlock(blocks, block) {
  return [...blocks.filter(({ start, end }) => end <= block.start || start >= block.end), block]
    .sort((a, b) => a.start - b.start);
}

/**
 * The middle layer of the longest stretch that no block has.
 *
 * @param {readonly Block[]} blocks In the order of their layers.
 * @param {number} nLayer
 * @returns {number | undefined} Undefined if no layer is free.
 */
export function freeLayer(blocks, nLayer) {
  let best = { start: 0, length: 0 };
  let from = 0;
  for (const { start, end } of [...blocks, { start: nLayer, end: nLayer }]) {
    if (start - from > best.length) best = { start: from, length: start - from };
    from = end;
  }
  return best.length ? best.start + (best.length >> 1) : undefined;
}

/**
 * Layers as text: `26..33`, or `26`.
 *
 * @param {number} start
 * @param {number} end Layer after the last.
 * @returns {string}
 */
export function range(start, end) {
  return end - start === 1 ? `${start}` : `${start}..${end - 1}`;
}

/**
 * Layers at either end whose repetition usually harms.
 *
 * @param {number} nLayer
 * @returns {number}
 */
export function edgeOf(nLayer) {
  return Math.max(3, Math.floor(nLayer / 8));
}
