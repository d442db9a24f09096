import { fileURLToPath } from "node:url";
import type { Model } from "@rys/edge";
import { LineChild } from "./_line_child.ts";
import { cacheDir, FetchError } from "./fetch.ts";

/** The version that is compared with; it holds the llama.cpp that this package is built from. */
export const PEER_VERSION = "3.22.1";

/**
 * Installs npm's node-llama-cpp with its prebuilt native binary into the cache, once.
 *
 * @returns The folder of its package.
 * @throws {FetchError} If npm or the network is missing, or there is no binary for this machine.
 */
export async function installPeer(
  onLine: (line: string) => void = (line) => console.error(line),
): Promise<string> {
  const binary = ({
    "linux-x86_64": "linux-x64",
    "linux-aarch64": "linux-arm64",
    "darwin-x86_64": "mac-x64",
    "darwin-aarch64": "mac-arm64-metal",
    "windows-x86_64": "win-x64",
    "windows-aarch64": "win-arm64",
  } as Record<string, string>)[`${Deno.build.os}-${Deno.build.arch}`];
  if (!binary) throw new FetchError(`node-llama-cpp has no binary for ${Deno.build.target}`);
  // Only this machine's binary: the package's own choice would bring several GPU libraries too.
  return await installPackage("node-llama-cpp", PEER_VERSION, [
    "--omit=optional",
    `@node-llama-cpp/${binary}@${PEER_VERSION}`,
  ], onLine);
}

/**
 * Installs a package of npm into the cache, once; safe to kill and to run several times at once.
 *
 * @param name The package, without its scripts.
 * @param more Further arguments of `npm install`.
 * @returns The folder of the package.
 * @throws {FetchError} If npm or the network is missing.
 */
export async function installPackage(
  name: string,
  version: string,
  more: string[] = [],
  onLine: (line: string) => void = (line) => console.error(line),
): Promise<string> {
  const short = name.slice(name.lastIndexOf("/") + 1);
  const dir = `${cacheDir()}/peer/${short}-${version}`;
  const found = `${dir}/node_modules/${name}`;
  await Deno.mkdir(`${cacheDir()}/peer`, { recursive: true });
  using lock = await Deno.open(`${dir}.lock`, { create: true, write: true });
  await lock.lock(true);
  if (await Deno.stat(found).then(() => true, () => false)) return found;
  onLine(`fetching ${short} ${version} from npm`);
  const partial = `${dir}.part`;
  await Deno.remove(partial, { recursive: true }).catch(() => {});
  await Deno.mkdir(partial);
  await Deno.writeTextFile(`${partial}/package.json`, "{}");
  const args = [
    ...["install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"],
    ...[...more, `${name}@${version}`],
  ];
  const npm = Deno.build.os === "windows" ? "npm.cmd" : "npm";
  let output: Deno.CommandOutput;
  try {
    output = await new Deno.Command(npm, { args, cwd: partial, stdin: "null" }).output();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    throw new FetchError(`Cannot fetch ${short}: npm is not on PATH; install Node.js`);
  }
  if (!output.success) {
    const says = new TextDecoder().decode(output.stderr).trim().split("\n").slice(-5).join("\n  ");
    throw new FetchError(`Cannot fetch ${short} from npm: is there a network?\n  ${says}`);
  }
  await Deno.rename(partial, dir);
  return found;
}

/** Why the peer cannot run here, or nothing. */
export async function whyNoPeer(): Promise<string | undefined> {
  try {
    await installPeer();
    await new Deno.Command("node", { args: ["--version"] }).output();
    return undefined;
  } catch (error) {
    if (error instanceof FetchError) return error.message;
    if (error instanceof Deno.errors.NotFound) return "node is not on PATH; install Node.js";
    throw error;
  }
}

/** Starts node-llama-cpp in a Node process; see `_peer_child.mjs` for its requests. */
export async function startPeer(): Promise<LineChild> {
  const script = fileURLToPath(new URL("./_peer_child.mjs", import.meta.url));
  return new LineChild("node", [script, await installPeer()]);
}

/** Where two engines stand on the same text. */
export interface Comparison {
  /** Tokens that were compared. */
  n: number;
  /** Places where our favourite is not theirs although theirs leads by more than a tie. */
  others: string[];
  /** Largest difference of log probabilities among their eight likeliest tokens of each place. */
  worst: number;
  /** Mean of those differences. */
  mean: number;
}

/**
 * Lets the peer go on from `tokens` and compares ours with it along its own text, so that a near-tie that falls
 * differently at one place (sums of floats in another order) changes nothing at the next.
 *
 * @param tie Lead of their favourite, as a difference of logarithms, below which rounding decides.
 */
export async function compareWithPeer(
  model: Model,
  peer: LineChild,
  tokens: number[],
  { name = "c", n = 64, tie }: { name?: string; n?: number; tie: number },
): Promise<Comparison> {
  const { tokens: said } = await peer.call<{ tokens: number[] }>("greedy", { name, tokens, n });
  const whole = [...tokens, ...said];
  const from = tokens.length - 1;
  const theirs = await peer.call<{ token: number; logprob: number }[][]>(
    "score",
    { name, tokens: whole, from, top: 8 },
  );
  const { data, nVocab } = await model.logits(whole, { repeatLayers: "none", threads: 1 });
  const others: string[] = [];
  let worst = 0;
  let mean = 0;
  for (const [i, top] of theirs.entries()) {
    const row = data.subarray((from + i) * nVocab, (from + i + 1) * nVocab);
    let favourite = 0;
    for (let token = 1; token < nVocab; token++) {
      if (row[token]! > row[favourite]!) favourite = token;
    }
    const most = row[favourite]!;
    const norm = most + Math.log(row.reduce((sum, x) => sum + Math.exp(x - most), 0));
    for (const { token, logprob } of top) {
      const difference = Math.abs(row[token]! - norm - logprob);
      worst = Math.max(worst, difference);
      mean += difference / (theirs.length * top.length);
    }
    if (favourite === top[0]!.token) continue;
    const lead = top[0]!.logprob - (top.find(({ token }) => token === favourite)?.logprob ?? -99);
    if (lead > tie) others.push(`${i}: ${favourite}, theirs ${top[0]!.token} leads by ${lead}`);
  }
  return { n: theirs.length, others, worst, mean };
}
