/** The fewest half-open ranges that make `layers`, in order. */
export function stretches(layers: readonly number[]): [start: number, end: number][] {
  const found: [number, number][] = [];
  for (const il of layers) {
    const last = found.at(-1);
    if (last && last[1] === il) last[1]++;
    else found.push([il, il + 1]);
  }
  return found;
}
