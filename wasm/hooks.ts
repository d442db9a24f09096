/**
 * Anchored edits over a pristine upstream checkout.
 *
 * A hook file `cpp/hooks/<purpose>/<path of the upstream file>.hook` holds any number of edits:
 *
 * ```text
 * <why: what breaks without it>
 * @@ <name> after|before|replace
 * <anchor: one or more whole lines, or a part of one line, that occurs exactly once>
 * @@ with
 * <our text>
 * @@ end
 * ```
 *
 * `after` puts our text on new lines after the line that ends the anchor, `before` on new lines before the
 * line that starts it, `replace` takes the anchor's own characters away. An edit without a reason above it shares that of
 * the one before it.
 *
 * ```text
 * deno run -A wasm/hooks.ts [--list | --diff] [CHECKOUT]
 * ```
 *
 * applies the edits to a pristine checkout, or lists them with their reasons, or prints them as one ordinary patch.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { replaceFile } from "./progress.ts";
import { parseArgs } from "@std/cli/parse-args";

/** One edit of a hook file. */
export interface Hook {
  /** Unique name; our text carries it as `rys-hook: <name>`. */
  name: string;
  /** Where our text goes relative to the anchor. */
  mode: "after" | "before" | "replace";
  /** Upstream text that must occur exactly once. */
  anchor: string;
  /** Our text, without a trailing newline. */
  text: string;
  /** What breaks without it. */
  why: string;
  /** Line of the hook file on which the edit starts, from 1. */
  line: number;
}

/** What hooks are for; the first folder of their path. */
export const PURPOSES = ["plan", "engine", "gpu", "fixes"] as const;

/** Thrown when a hook file is malformed or an anchor does not occur exactly once. */
export class HookError extends Error {
  override name = "HookError";
}

const HEAD = /^@@ ([a-z0-9-]+) (after|before|replace)$/;

/**
 * Reads the edits of one hook file.
 *
 * @param text Contents of the hook file.
 * @param file Its name, for messages.
 * @returns The edits in the order they stand.
 * @throws {HookError} If the file is malformed.
 */
export function parseHooks(text: string, file: string): Hook[] {
  const lines = text.split("\n");
  const hooks: Hook[] = [];
  const names = new Set<string>();
  let why = "";
  let reason: string[] = [];
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!;
    if (!line.startsWith("@@")) {
      if (line.trim()) reason.push(line.trim());
      continue;
    }
    if (reason.length > 0) why = reason.join(" ");
    reason = [];
    const head = HEAD.exec(line);
    if (!head) {
      throw new HookError(
        `${file}:${i + 1}: expected "@@ <name> after|before|replace", found "${line}"`,
      );
    }
    const start = i + 1;
    const section = (end: string): string => {
      const from = ++i;
      while (i < lines.length && lines[i] !== end) i++;
      if (i === lines.length) {
        throw new HookError(`${file}:${start}: hook "${head[1]}" has no "${end}" line`);
      }
      return lines.slice(from, i).join("\n");
    };
    const anchor = section("@@ with");
    const body = section("@@ end");
    const name = head[1]!;
    if (!anchor.trim()) throw new HookError(`${file}:${start}: hook "${name}" has an empty anchor`);
    if (names.has(name)) throw new HookError(`${file}:${start}: hook name "${name}" is used twice`);
    if (!body.includes(`rys-hook: ${name}`)) {
      throw new HookError(`${file}:${start}: hook "${name}" lacks its tag "rys-hook: ${name}"`);
    }
    if (!why) {
      throw new HookError(`${file}:${start}: hook "${name}" has no line above it that says why`);
    }
    names.add(name);
    hooks.push({ name, mode: head[2] as Hook["mode"], anchor, text: body, why, line: start });
  }
  if (hooks.length === 0) throw new HookError(`${file}: no hook found`);
  return hooks;
}

/**
 * Applies edits to the text of one upstream file.
 *
 * Anchors are looked up in the pristine text, so the order of edits does not matter and our own text can never
 * satisfy an anchor.
 *
 * @param source Pristine upstream text.
 * @param hooks Edits, from {@linkcode parseHooks}, with the names of their files for messages.
 * @returns The edited text.
 * @throws {HookError} Names every anchor that is gone or doubled, and every edit that touches another's characters.
 */
export function applyHooks(source: string, hooks: (Hook & { file: string })[]): string {
  const problems: string[] = [];
  const edits = hooks.flatMap((hook, order) => {
    const at = source.indexOf(hook.anchor);
    const where = `${hook.file}:${hook.line}: hook "${hook.name}"`;
    const first = hook.anchor.split("\n")[0]!.trim();
    if (at < 0) {
      problems.push(`${where}: its anchor is gone from upstream (starts with "${first}")`);
      return [];
    }
    if (source.indexOf(hook.anchor, at + 1) >= 0) {
      problems.push(
        `${where}: its anchor occurs more than once in upstream (starts with "${first}")`,
      );
      return [];
    }
    const end = at + hook.anchor.length;
    const lineStart = source.lastIndexOf("\n", at - 1) + 1;
    const newline = source.indexOf("\n", end);
    const lineEnd = newline < 0 ? source.length : newline + 1;
    if (hook.mode === "replace") return { from: at, to: end, text: hook.text, order, where };
    const pos = hook.mode === "after" ? lineEnd : lineStart;
    const lead = hook.mode === "after" && newline < 0 ? "\n" : "";
    return { from: pos, to: pos, text: `${lead}${hook.text}\n`, order, where };
  });
  edits.sort((a, b) => a.from - b.from || a.order - b.order);
  let out = "";
  let pos = 0;
  for (const edit of edits) {
    if (edit.from < pos) {
      problems.push(`${edit.where}: touches text that another hook replaces`);
      continue;
    }
    out += source.slice(pos, edit.from) + edit.text;
    pos = edit.to;
  }
  if (problems.length > 0) throw new HookError(problems.join("\n"));
  return out + source.slice(pos);
}

/** A hook and where it stands. */
export interface PlacedHook extends Hook {
  /** What it is for: the first folder of its path. */
  purpose: string;
  /** Path of the upstream file. */
  target: string;
  /** Its own file, for messages. */
  file: string;
}

/**
 * Reads every hook file under a folder.
 *
 * @param hooksDir Folder of `<purpose>/<path of the upstream file>.hook`.
 * @returns The hooks, file by file.
 * @throws {HookError} If a hook file is malformed, or a name is used twice.
 */
export function readHooks(hooksDir: string): PlacedHook[] {
  const hooks: PlacedHook[] = [];
  const names = new Set<string>();
  for (const rel of hookFiles(hooksDir)) {
    const file = `cpp/hooks/${rel}`;
    const [purpose = "", ...path] = rel.slice(0, -".hook".length).split("/");
    if (!(PURPOSES as readonly string[]).includes(purpose)) {
      throw new HookError(`${file}: hooks stand in folders named ${PURPOSES.join(", ")}`);
    }
    for (const hook of parseHooks(Deno.readTextFileSync(`${hooksDir}/${rel}`), file)) {
      if (names.has(hook.name)) {
        throw new HookError(`${file}: hook name "${hook.name}" is used in another file`);
      }
      names.add(hook.name);
      hooks.push({ ...hook, purpose, target: path.join("/"), file });
    }
  }
  return hooks;
}

/**
 * Applies every hook file under a folder to the pristine text of its upstream file. Writes nothing.
 *
 * @param hooksDir Folder of hook files, as for {@linkcode readHooks}.
 * @param pristine Root of a pristine upstream checkout.
 * @returns The edited texts by relative path, and the names of the hooks.
 * @throws {HookError} If a hook file is malformed; names every target that is missing and every anchor that does not match.
 */
export function hookedTexts(
  hooksDir: string,
  pristine: string,
): { texts: Map<string, string>; names: string[] } {
  const hooks = readHooks(hooksDir);
  const texts = new Map<string, string>();
  const problems: string[] = [];
  for (const [target, ofTarget] of Map.groupBy(hooks, (hook) => hook.target)) {
    try {
      const source = Deno.readTextFileSync(`${pristine}/${target}`);
      texts.set(target, applyHooks(source, ofTarget));
    } catch (error) {
      if (error instanceof HookError) problems.push(error.message);
      else if (error instanceof Deno.errors.NotFound) {
        problems.push(`${ofTarget[0]!.file}: upstream has no file ${target}`);
      } else throw error;
    }
  }
  if (problems.length > 0) throw new HookError(problems.join("\n"));
  return { texts, names: hooks.map(({ name }) => name) };
}

/**
 * Lists hook files.
 *
 * @param dir Folder to walk.
 * @returns Paths relative to `dir`, sorted.
 */
function hookFiles(dir: string): string[] {
  const found: string[] = [];
  const walk = (rel: string) => {
    for (const entry of Deno.readDirSync(`${dir}/${rel}`)) {
      const path = rel ? `${rel}/${entry.name}` : entry.name;
      if (entry.isDirectory) walk(path);
      else if (entry.name.endsWith(".hook")) found.push(path);
    }
  };
  walk("");
  return found.sort();
}

/**
 * The edits as one ordinary patch.
 *
 * @param texts Edited texts by path, from {@linkcode hookedTexts}.
 * @param pristine Root of the pristine checkout.
 * @returns A patch that `git apply` accepts.
 */
export async function hooksPatch(texts: Map<string, string>, pristine: string): Promise<string> {
  const dir = await Deno.makeTempDir({ prefix: "rys-hooks-" });
  try {
    for (const [path, text] of texts) {
      for (
        const [side, content] of [["a", await Deno.readTextFile(`${pristine}/${path}`)], [
          "b",
          text,
        ]]
      ) {
        await Deno.mkdir(`${dir}/${side}/${path.slice(0, path.lastIndexOf("/"))}`, {
          recursive: true,
        });
        await Deno.writeTextFile(`${dir}/${side}/${path}`, content!);
      }
    }
    const { stdout } = await new Deno.Command("git", {
      args: ["diff", "--no-index", "--no-prefix", "--no-color", "a", "b"],
      cwd: dir,
    }).output();
    return new TextDecoder().decode(stdout);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

const USAGE = `usage: deno run -A wasm/hooks.ts [--list | --diff] [CHECKOUT]
  applies cpp/hooks to a pristine checkout of llama.cpp
  --list   list the hooks instead, with what they are for
  --diff   print them as one ordinary patch instead; without CHECKOUT of the pinned llama.cpp`;

async function main(): Promise<void> {
  const { list, diff, _: [given] } = parseArgs(Deno.args, { boolean: ["list", "diff"] });
  const hooksDir = fileURLToPath(new URL("../cpp/hooks", import.meta.url));
  if (list) {
    for (const { purpose, name, target, why } of readHooks(hooksDir)) {
      console.log(`${purpose}\t${name}\t${target}\t${why}`);
    }
    return;
  }
  let checkout = given === undefined ? undefined : String(given);
  if (checkout === undefined && diff) {
    const [{ buildCache, pinnedUpstream }, { Progress }] = await Promise.all([
      import("./upstream.ts"),
      import("./progress.ts"),
    ]);
    checkout = await pinnedUpstream(buildCache(), new Progress());
  }
  if (checkout === undefined) {
    console.error(USAGE);
    Deno.exit(2);
  }
  const { texts, names } = hookedTexts(hooksDir, checkout);
  if (diff) {
    await Deno.stdout.write(new TextEncoder().encode(await hooksPatch(texts, checkout)));
    return;
  }
  // Only once every anchor has been found: a failed run leaves the checkout pristine.
  for (const [path, text] of texts) {
    replaceFile(`${checkout}/${path}`, text);
  }
  console.error(`${names.length} hooks applied to ${texts.size} files`);
}

// Not awaited: upstream.ts, which main() may import, imports this file.
if (import.meta.main) {
  main().catch((error) => {
    if (!(error instanceof HookError)) throw error;
    console.error(`error: ${error.message}`);
    Deno.exit(1);
  });
}
