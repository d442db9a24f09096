// Questions about chains: one hop for each link on the way to the end, so their difficulty is a number.

/** What is linked: short names, so that a small model can have a token for each. */
const NAMES =
  ("ant bat bear bee bird boar bull cat cow crab crow deer dog duck elk fish fox frog " +
    "goat hare hawk hen horse lamb lion mole moth mouse mule owl pig pony ram rat seal sheep swan " +
    "toad wasp wolf").split(" ");

/** Links in the longest chain. */
const LONGEST = 4;

/** A question about a chain, and its one right answer. */
export interface ChainQuestion {
  /** E.g. `fox cat, dog pig, cat owl. Who is at the end of the line from the fox?` */
  prompt: string;
  /** The last name of the chain, e.g. `owl`. */
  answer: string;
  /** The names from the one asked for to the last; `hops` + 1 of them. */
  way: string[];
}

/** Which questions to generate. */
export interface ChainOptions {
  /** How many. */
  count: number;
  /** Links from the name asked for to the end of its chain, 1 to 4. */
  hops: number;
  /** Links in a question, all chains together; at least `hops`, at most 8. Default: 7. */
  links?: number;
  /** The same seed gives the same questions. */
  seed: number;
}

/**
 * Generates questions about chains. The links stand in random order, mixed with those of other chains; the name asked
 * for may have links before it.
 *
 * @param options How many, how hard, and a seed.
 * @throws {RangeError} If a number is out of its range.
 */
export function chainQuestions(options: ChainOptions): ChainQuestion[] {
  const { count, hops, links = 7, seed } = options;
  whole("count", count, 0, 1_000_000);
  whole("hops", hops, 1, LONGEST);
  whole("links", links, hops, 8);
  whole("seed", seed, 0, 2 ** 32 - 1);
  const random = mulberry32(seed);
  return Array.from({ length: count }, () => question(random, hops, links));
}

function question(random: () => number, hops: number, links: number): ChainQuestion {
  const below = (n: number) => Math.floor(random() * n);
  const names = shuffled(NAMES, below);
  const pairs: string[] = [];
  const chainOf = (length: number): string[] => {
    const chain = names.splice(0, length + 1);
    for (let i = 0; i < length; i++) pairs.push(`${chain[i]} ${chain[i + 1]}`);
    return chain;
  };
  const most = Math.min(LONGEST, links);
  const way = chainOf(hops + below(most - hops + 1)).slice(-hops - 1);
  while (pairs.length < links) chainOf(1 + below(Math.min(LONGEST, links - pairs.length)));
  const told = shuffled(pairs, below).join(", ");
  return {
    prompt: `${told}. Who is at the end of the line from the ${way[0]}?`,
    answer: way.at(-1)!,
    way,
  };
}

function shuffled<T>(list: readonly T[], below: (n: number) => number): T[] {
  const out = [...list];
  for (let i = out.length - 1; i > 0; i--) {
    const j = below(i + 1);
    [out[i], out[j]] = [out[j]!, out[i]!];
  }
  return out;
}

function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function whole(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw new RangeError(
    `chainQuestions(): ${name} must be a whole number from ${least} to ${most}, not ${value}`,
  );
}
