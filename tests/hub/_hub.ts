// A hub on this machine that speaks as huggingface.co does, with a second server for the bytes, and misbehaves on demand.

import { createHash } from "node:crypto";

/** A repository on the hub. */
export interface TestRepo {
  /** Bytes by path. */
  files: Record<string, Uint8Array<ArrayBuffer>>;
  /** Paths that git has itself, without LFS: the hub sends their bytes. */
  small?: string[];
  /** Asked for by tokens alone. */
  access?: "gated" | "private";
}

/** What to do wrong. */
export interface Faults {
  /** The byte server sends whole files, whatever part is asked for. */
  ignoreRanges: boolean;
  /** Requests that a signed address is good for; after them it answers 403. */
  signatureUses: number;
  /** Answers of the byte server, one after another, that break off after so many bytes. */
  cutAfter: number[];
  /** Answers of either server, one after another, that are this status in place of what was asked for. */
  statuses: number[];
  /** The byte server changes one byte of what it sends. */
  corrupt: boolean;
  /** The byte server sends no more than this many bytes until the promise resolves. */
  hold: { after: number; until: Promise<void> } | undefined;
  /** Bytes a second that the byte server sends on each connection. */
  rate: number;
  /** Answers of the byte server begin at another byte than was asked for. */
  shift: number;
  /** The hub redirects a path to this address. */
  redirect: Record<string, string>;
  /** The size that a listing gives for every file, in place of the right one. */
  claim: number | undefined;
  /** Entries of one page of a listing. */
  pageSize: number;
}

/** A request as it arrived. */
export interface Seen {
  /** `hub`, `bytes`, or `other`, a third host that nobody should trust. */
  server: "hub" | "bytes" | "other";
  /** Path and query. */
  path: string;
  /** Its `Range`. */
  range: string | null;
  /** Its `Authorization`. */
  authorization: string | null;
}

/** The token that opens gated and private repositories. */
export const TOKEN = `hf_${"t".repeat(34)}`;

/** SHA-256 as the hub writes it. */
export const sha256 = (bytes: Uint8Array): string =>
  createHash("sha256").update(bytes).digest("hex");

/** Git's name for a file. */
export const gitSha1 = (bytes: Uint8Array): string =>
  createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");

/** Bytes that differ everywhere, so that a part in the wrong place shows. */
export function noise(length: number, seed = 1): Uint8Array<ArrayBuffer> {
  const words = new Uint32Array(Math.ceil(length / 4));
  let x = seed >>> 0 || 1;
  for (let i = 0; i < words.length; i++) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    words[i] = x;
  }
  return new Uint8Array(words.buffer, 0, length);
}

/** The servers. */
export class TestHub implements AsyncDisposable {
  /** Every request, in the order of arrival. */
  readonly seen: Seen[] = [];
  /** What to do wrong. */
  readonly faults: Faults = {
    ignoreRanges: false,
    signatureUses: Infinity,
    cutAfter: [],
    statuses: [],
    corrupt: false,
    hold: undefined,
    rate: Infinity,
    shift: 0,
    redirect: {},
    claim: undefined,
    pageSize: 1000,
  };
  readonly #servers: Deno.HttpServer<Deno.NetAddr>[] = [];
  readonly #uses = new Map<string, number>();
  #signatures = 0;

  /** @param repos Repositories by name; may be changed at any time. */
  constructor(readonly repos: Record<string, TestRepo>) {
    const serve = (server: Seen["server"], handler: (request: Request) => Promise<Response>) =>
      Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
        const { pathname, search } = new URL(request.url);
        this.seen.push({
          server,
          path: pathname + search,
          range: request.headers.get("range"),
          authorization: request.headers.get("authorization"),
        });
        return await handler(request);
      });
    this.#servers.push(
      serve("hub", (request) => this.#hub(request)),
      serve("bytes", (request) => Promise.resolve(this.#bytes(request))),
      serve("other", () => Promise.resolve(new Response("nothing", { status: 404 }))),
    );
  }

  #origin(index: number): string {
    return `http://127.0.0.1:${this.#servers[index]!.addr.port}`;
  }

  /** Address of the hub. */
  get endpoint(): string {
    return this.#origin(0);
  }

  /** Address of the server that has the bytes, also of plain files: `/plain/owner/repo/path`. */
  get bytes(): string {
    return this.#origin(1);
  }

  /** Address of a host that is neither. */
  get other(): string {
    return this.#origin(2);
  }

  /** The commit of a repository: another one when its files are others. */
  commit(repo: string): string {
    const hash = createHash("sha1");
    for (const [path, bytes] of Object.entries(this.repos[repo]!.files)) {
      hash.update(`${path} ${gitSha1(bytes)}\n`);
    }
    return hash.digest("hex");
  }

  /** Requests for bytes so far. */
  get downloads(): Seen[] {
    return this.seen.filter(({ server }) => server === "bytes");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.shutdown()));
  }

  #fails(): Response | undefined {
    const status = this.faults.statuses.shift();
    if (status === undefined || status === 200) return undefined;
    return new Response("busy", { status, headers: { "retry-after": "0" } });
  }

  async #hub(request: Request): Promise<Response> {
    const failure = this.#fails();
    if (failure) return failure;
    const url = new URL(request.url);
    const to = this.faults.redirect[url.pathname];
    if (to !== undefined) return new Response(null, { status: 307, headers: { location: to } });
    const api = /^\/api\/models\/([^/]+\/[^/]+)\/(revision|tree)\/([^/]+)$/.exec(url.pathname);
    const file = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(url.pathname);
    const [name, revision] = api ? [api[1]!, api[3]!] : file ? [file[1]!, file[2]!] : [];
    if (name === undefined) return new Response("what?", { status: 404 });
    const repo = this.repos[name];
    const authorization = request.headers.get("authorization");
    if (authorization !== null && authorization !== `Bearer ${TOKEN}`) {
      return refuse(401, undefined, "Invalid username or password.");
    }
    if (repo === undefined || (repo.access === "private" && authorization === null)) {
      return refuse(authorization === null ? 401 : 404, "RepoNotFound", "Repository not found");
    }
    // The hub lists a gated repository's files to everybody, and sends none of them.
    if (repo.access === "gated" && authorization === null && file) {
      return refuse(401, "GatedRepo", `Access to model ${name} is restricted.`);
    }
    const commit = this.commit(name);
    if (![commit, "main", "HEAD"].includes(decodeURIComponent(revision!))) {
      return refuse(404, "RevisionNotFound", `Invalid rev id: ${revision}`);
    }
    if (api?.[2] === "revision") {
      return Response.json({
        _id: "1",
        id: name,
        sha: commit,
        lastModified: "2026-01-01T00:00:00Z",
      });
    }
    if (api) return this.#tree(repo, url);
    return await this.#resolve(repo, decodeURIComponent(file![3]!), commit, request);
  }

  #tree(repo: TestRepo, url: URL): Response {
    const all = Object.entries(repo.files).map(([path, bytes]) => ({
      type: "file",
      path,
      size: this.faults.claim ?? bytes.length,
      oid: gitSha1(repo.small?.includes(path) ? bytes : new TextEncoder().encode(sha256(bytes))),
      ...repo.small?.includes(path)
        ? {}
        : { lfs: { oid: sha256(bytes), size: bytes.length, pointerSize: 130 } },
    }));
    const folders = new Set(all.map(({ path }) => /^(.*)\//.exec(path)?.[1]).filter(Boolean));
    const entries = [
      ...[...folders].map((path) => ({ type: "directory", path, size: 0, oid: "0".repeat(40) })),
      ...all,
    ];
    const at = Number(url.searchParams.get("cursor") ?? 0);
    const end = at + this.faults.pageSize;
    const headers = new Headers();
    if (end < entries.length) {
      url.searchParams.set("cursor", String(end));
      headers.set("link", `<${this.endpoint}${url.pathname}${url.search}>; rel="next"`);
    }
    return Response.json(entries.slice(at, end), { headers });
  }

  async #resolve(
    repo: TestRepo,
    path: string,
    commit: string,
    request: Request,
  ): Promise<Response> {
    const bytes = repo.files[path];
    if (bytes === undefined) return refuse(404, "EntryNotFound", "Entry not found");
    const headers = { "x-repo-commit": commit };
    if (repo.small?.includes(path)) {
      return this.#send(request, bytes, `"${gitSha1(bytes)}"`, headers);
    }
    const signature = String(++this.#signatures);
    await Promise.resolve();
    return new Response(null, {
      status: 302,
      headers: {
        ...headers,
        "x-linked-etag": `"${sha256(bytes)}"`,
        "x-linked-size": String(bytes.length),
        location: `${this.bytes}/lfs/${sha256(bytes)}?signature=${signature}`,
      },
    });
  }

  #bytes(request: Request): Response {
    const failure = this.#fails();
    if (failure) return failure;
    const url = new URL(request.url);
    const all = Object.entries(this.repos).flatMap(([repo, { files }]) =>
      Object.entries(files).map(([path, bytes]) => ({ path: `/plain/${repo}/${path}`, bytes }))
    );
    const plain = all.find(({ path }) => path === decodeURIComponent(url.pathname));
    if (plain) return this.#send(request, plain.bytes, `"v-${sha256(plain.bytes).slice(0, 16)}"`);
    const signature = url.searchParams.get("signature") ?? "";
    const uses = (this.#uses.get(signature) ?? 0) + 1;
    this.#uses.set(signature, uses);
    const hex = url.pathname.replace(/^\/lfs\//, "");
    const found = all.find(({ bytes }) => sha256(bytes) === hex);
    if (signature === "" || uses > this.faults.signatureUses || found === undefined) {
      return new Response("<Code>AccessDenied</Code><Message>Request has expired</Message>", {
        status: 403,
      });
    }
    return this.#send(request, found.bytes, `"c-${hex.slice(0, 16)}"`);
  }

  #send(
    request: Request,
    whole: Uint8Array<ArrayBuffer>,
    etag: string,
    more: Record<string, string> = {},
  ): Response {
    const { faults } = this;
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "");
    const isPart = range !== null && !faults.ignoreRanges;
    let start = isPart ? Number(range[1]) : 0;
    const end = isPart ? Math.min(Number(range[2]) + 1, whole.length) : whole.length;
    if (start >= whole.length && whole.length > 0) {
      return new Response(null, {
        status: 416,
        headers: { "content-range": `bytes */${whole.length}` },
      });
    }
    start = Math.min(start + faults.shift, end);
    let bytes = whole.subarray(start, end);
    if (faults.corrupt && bytes.length > 1) {
      bytes = bytes.slice();
      bytes[bytes.length >> 1]! ^= 1;
    }
    const headers = {
      ...more,
      etag,
      "content-length": String(bytes.length),
      ...isPart ? { "content-range": `bytes ${start}-${end - 1}/${whole.length}` } : {},
    };
    const cut = bytes.length > 1 ? faults.cutAfter.shift() : undefined;
    return new Response(this.#stream(bytes, cut), { status: isPart ? 206 : 200, headers });
  }

  #stream(bytes: Uint8Array<ArrayBuffer>, cut: number | undefined): ReadableStream<Uint8Array> {
    const { faults } = this;
    let at = 0;
    return new ReadableStream({
      async pull(controller) {
        if (cut !== undefined && at >= cut) return controller.error(new Error("cut"));
        const { hold, rate } = faults;
        if (hold && at >= hold.after) await hold.until;
        let n = Math.min(16384, bytes.length - at);
        if (cut !== undefined) n = Math.min(n, cut - at);
        if (hold && at < hold.after) n = Math.min(n, hold.after - at);
        if (rate < Infinity) await new Promise((done) => setTimeout(done, 1000 * n / rate));
        if (n > 0) controller.enqueue(bytes.subarray(at, at + n));
        at += n;
        if (at >= bytes.length) controller.close();
      },
    }, { highWaterMark: 0 });
  }
}

function refuse(status: number, code: string | undefined, message: string): Response {
  return Response.json({ error: message }, {
    status,
    headers: { ...code === undefined ? {} : { "x-error-code": code }, "x-error-message": message },
  });
}

/** A hub and an empty cache, for as long as a test runs. */
export async function withHub(
  repos: Record<string, TestRepo>,
  test: (hub: TestHub, cacheDir: string) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "rys-hub-" });
  try {
    await using hub = new TestHub(repos);
    await test(hub, folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
