/**
 * Anchored edits over a pristine upstream checkout.
 *
 * A hook file `cpp/hooks/<path of the upstream file>.hook` holds any number of edits:
 *
 * ```text
 * @@ <name> after|before|replace
 * <anchor: one or more whole lines, or a part of one line, that occurs exactly once>
 * @@ with
 * <our text>
 * @@ end
 * ```
 *
 * `after` puts our text on new lines after the line that ends the anchor, `before` on new lines before the
 * line that starts it, `replace` takes the anchor's own characters away. Lines outside an edit are comments.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { replaceFile } from "./progress.ts";

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
  /** Line of the hook file on which the edit starts, from 1. */
  line: number;
}

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
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!;
    if (!line.startsWith("@@")) continue;
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
    names.add(name);
    hooks.push({ name, mode: head[2] as Hook["mode"], anchor, text: body, line: start });
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
 * @param hooks Edits, from {@linkcode parseHooks}.
 * @param file The hook file's name, for messages.
 * @returns The edited text.
 * @throws {HookError} If an anchor is gone or doubled, or two edits touch the same characters.
 */
export function applyHooks(source: string, hooks: Hook[], file: string): string {
  const edits = hooks.map((hook, order) => {
    const at = source.indexOf(hook.anchor);
    const where = `${file}:${hook.line}: hook "${hook.name}"`;
    const first = hook.anchor.split("\n")[0]!.trim();
    if (at < 0) {
      throw new HookError(`${where}: its anchor is gone from upstream (starts with "${first}")`);
    }
    if (source.indexOf(hook.anchor, at + 1) >= 0) {
      throw new HookError(
        `${where}: its anchor occurs more than once in upstream (starts with "${first}")`,
      );
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
      throw new HookError(`${edit.where}: touches text that another hook replaces`);
    }
    out += source.slice(pos, edit.from) + edit.text;
    pos = edit.to;
  }
  return out + source.slice(pos);
}

/**
 * Applies every hook file under a folder to the pristine text of its upstream file. Writes nothing.
 *
 * @param hooksDir Folder of `*.hook` files whose relative path names the upstream file.
 * @param pristine Root of a pristine upstream checkout.
 * @returns The edited texts by relative path, and the names of the hooks.
 * @throws {HookError} If a hook file is malformed, its target is missing, or an anchor does not match.
 */
export function hookedTexts(
  hooksDir: string,
  pristine: string,
): { texts: Map<string, string>; names: string[] } {
  const texts = new Map<string, string>();
  const names: string[] = [];
  for (const rel of hookFiles(hooksDir)) {
    const target = rel.slice(0, -".hook".length);
    const label = `cpp/hooks/${rel}`;
    const hooks = parseHooks(Deno.readTextFileSync(`${hooksDir}/${rel}`), label);
    let source: string;
    try {
      source = Deno.readTextFileSync(`${pristine}/${target}`);
    } catch (cause) {
      throw new HookError(`${label}: upstream has no file ${target}`, { cause });
    }
    texts.set(target, applyHooks(source, hooks, label));
    for (const { name } of hooks) {
      if (names.includes(name)) {
        throw new HookError(`${label}: hook name "${name}" is used in another file`);
      }
      names.push(name);
    }
  }
  return { texts, names };
}

/**
 * Lists hook files.
 *
 * @param dir Folder to walk.
 * @returns Paths relative to `dir`, sorted.
 */
export function hookFiles(dir: string): string[] {
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

if (import.meta.main) {
  const [checkout] = Deno.args;
  if (!checkout) {
    console.error(
      "usage: deno run -A wasm/hooks.ts CHECKOUT   (applies cpp/hooks to a pristine upstream checkout)",
    );
    Deno.exit(2);
  }
  const hooksDir = fileURLToPath(new URL("../cpp/hooks", import.meta.url));
  try {
    const { texts, names } = hookedTexts(hooksDir, checkout);
    // Only after every anchor was found: a failed run leaves the checkout pristine.
    for (const [path, text] of texts) replaceFile(`${checkout}/${path}`, text);
    console.error(`${names.length} hooks applied to ${texts.size} files`);
  } catch (error) {
    if (!(error instanceof HookError)) throw error;
    console.error(`error: ${error.message}`);
    Deno.exit(1);
  }
}
