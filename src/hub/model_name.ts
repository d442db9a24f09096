/** A file on this machine. */
export interface FileName {
  /** Which kind of name it is. */
  kind: "file";
  /** Its path. */
  path: string;
}

/** A model in a repository of the hub. */
export interface HubName {
  /** Which kind of name it is. */
  kind: "hub";
  /** Owner and name of the repository. */
  repo: string;
  /** Branch, tag or commit. Default `"main"`. */
  revision: string;
  /** Path of the file in the repository, or of any shard. */
  file?: string;
  /** The quantisation, if no file is named, as in `Q4_K_M`. */
  quant?: string;
}

/** A file on another server. */
export interface UrlName {
  /** Which kind of name it is. */
  kind: "url";
  /** Its address, without a fragment. */
  url: URL;
}

/** What the name of a model says. */
export type ModelName = FileName | HubName | UrlName;

/** The hub. */
export const HUB = "https://huggingface.co";

const FORM = "hf:OWNER/REPO[@REVISION][:QUANT] or hf:OWNER/REPO[@REVISION]/FILE.gguf";
const REPO = /^\w+(?:[.-]\w+)*\/\w+(?:[.-]+\w+)*$/;
/** The hub's and its mirrors' addresses of files: owner, name, what of them, revision, path. */
const PAGE =
  /^\/([^/]+\/[^/]+)(?:\/?|\/(?:tree)\/([^/]+)\/?|\/(?:resolve|blob|raw)\/([^/]+)\/(.+))$/;

/**
 * Whether a name is that of a model elsewhere, which is fetched before it is used.
 *
 * @param name A path, `hf:...` or a URL.
 *
 * @example
 * ```ts
 * import { isRemoteName } from "@rys/edge";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(["hf:owner/repo", "https://example.com/m.gguf", "m.gguf"].map(isRemoteName), [true, true, false]);
 * ```
 */
export function isRemoteName(name: string): boolean {
  return /^(?:hf:|https?:\/\/)/i.test(name);
}

/**
 * Reads the name of a model: a path, `hf:owner/repo`, `hf:owner/repo:Q4_K_M`, `hf:owner/repo/file.gguf` (each with
 * `@revision` after the repository), or a URL; the URL of a file or repository on the hub is a name there.
 *
 * @param name The name.
 * @param endpoint Address of the hub or its mirror.
 * @throws {SyntaxError} If it begins as a name on the hub and is none.
 *
 * @example
 * ```ts
 * import { parseModelName } from "@rys/edge";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(parseModelName("hf:owner/repo:q4_k_m"), {
 *   kind: "hub",
 *   repo: "owner/repo",
 *   revision: "main",
 *   quant: "q4_k_m",
 * });
 * assertEquals(
 *   parseModelName("https://huggingface.co/owner/repo/blob/main/m.gguf"),
 *   parseModelName("hf:owner/repo/m.gguf"),
 * );
 * ```
 */
export function parseModelName(name: string | URL, endpoint = HUB): ModelName {
  const text = String(name);
  if (/^hf:/i.test(text)) return parseHubName(text);
  if (!isRemoteName(text)) return { kind: "file", path: text };
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new SyntaxError(`Cannot read the model's name ${JSON.stringify(text)}: it is not a URL`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new SyntaxError(
      `Cannot read the model's name ${url.protocol}//...@${url.host}${url.pathname}: a URL with a user and a password is not fetched`,
    );
  }
  url.hash = "";
  return pageName(text, url, endpoint) ?? { kind: "url", url };
}

/** The name on the hub that a URL of the hub stands for. */
function pageName(text: string, url: URL, endpoint: string): HubName | undefined {
  const path = [endpoint, HUB, "https://hf.co"].map((one) => new URL(one))
    .filter((hub) => hub.origin === url.origin)
    .map((hub) => hub.pathname.replace(/\/$/, ""))
    .filter((prefix) => url.pathname.startsWith(`${prefix}/`))
    .map((prefix) => url.pathname.slice(prefix.length))[0];
  const match = path === undefined ? null : PAGE.exec(path);
  if (!match) return undefined;
  const [repo, tree, revision, file] = match.slice(1).map((part) =>
    part === undefined ? undefined : decode(text, part)
  );
  if (!isRepo(repo!)) return undefined;
  return hubName(text, repo!, revision ?? tree ?? "main", file, undefined);
}

function parseHubName(text: string): HubName {
  const match = /^hf:(?:\/\/)?([^/]+\/[^/:@]+)(?:@([^/:]+))?(?:\/(.*?))?(?::([^:/]*))?$/i.exec(
    text,
  );
  if (!match) throw wrong(text, `expected ${FORM}`);
  const [, repo, revision = "main", file, quant] = match;
  return hubName(text, repo!, decode(text, revision), file, quant);
}

function hubName(
  text: string,
  repo: string,
  revision: string,
  file: string | undefined,
  quant: string | undefined,
): HubName {
  if (!isRepo(repo)) {
    throw wrong(text, `${JSON.stringify(repo)} is not a repository; expected ${FORM}`);
  }
  if (!/^\w[\w./-]*$/.test(revision) || /\.\.|\/\/|[./]$/.test(revision)) {
    throw wrong(text, `${JSON.stringify(revision)} is not a branch, a tag or a commit`);
  }
  if (file !== undefined) {
    if (quant !== undefined) throw wrong(text, "a file and a quantisation exclude each other");
    if (!/\.gguf$/i.test(file)) {
      throw wrong(text, `the file ${JSON.stringify(file)} is not a GGUF; expected ${FORM}`);
    }
    if (!isInside(file)) throw wrong(text, `${JSON.stringify(file)} is not a path in a repository`);
  }
  if (quant !== undefined && !/^\w[\w.-]*$/.test(quant)) {
    throw wrong(text, `${JSON.stringify(quant)} is not a quantisation such as Q4_K_M`);
  }
  return {
    kind: "hub",
    repo,
    revision,
    ...file === undefined ? {} : { file },
    ...quant === undefined ? {} : { quant },
  };
}

/**
 * Joins a repository and a file, as llama.cpp's `-hf` and `-hff` give them, to a name.
 *
 * @param repo The repository, with a quantisation or without.
 * @param file The file, which goes before a quantisation.
 */
export function joinHubName(repo: string, file: string | undefined): string {
  const plain = repo.replace(/^hf:(?:\/\/)?/i, "");
  return `hf:${file === undefined ? plain : `${plain.replace(/:[^:]*$/, "")}/${file}`}`;
}

/** A name as it is written: `hf:...`, the URL, or the path. */
export function formatModelName(name: ModelName): string {
  if (name.kind === "file") return name.path;
  if (name.kind === "url") return name.url.href;
  const { repo, revision, file, quant } = name;
  const at = revision === "main" ? "" : `@${encodeURIComponent(revision)}`;
  const rest = file !== undefined ? `/${file}` : quant !== undefined ? `:${quant}` : "";
  return `hf:${repo}${at}${rest}`;
}

function isRepo(repo: string): boolean {
  return REPO.test(repo) && repo.length <= 256 && !/--|\.\./.test(repo);
}

/**
 * Whether a path stays inside of the folder that it is joined to, on every system.
 *
 * @param path The path, with slashes.
 */
export function isInside(path: string): boolean {
  // deno-lint-ignore no-control-regex
  if (path === "" || /[\\\x00-\x1f]|^[a-z]:/i.test(path)) return false;
  return path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

function decode(text: string, part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw wrong(text, `${JSON.stringify(part)} is not percent-encoded text`);
  }
}

function wrong(text: string, why: string): SyntaxError {
  return new SyntaxError(`Cannot read the model's name ${JSON.stringify(text)}: ${why}`);
}
