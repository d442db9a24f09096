/** How many layers at each end of a model a plan had better not repeat. */
export function edgeLayers(nLayer: number): number {
  return Math.max(3, Math.floor(nLayer / 8));
}
