// What `deno publish` would send.

/** The repository. */
export const ROOT = new URL("../../", import.meta.url);

/** A file of the package. */
export interface Published {
  /** Its path in the package. */
  path: string;
  /** Bytes. */
  size: number;
}

let asked: Promise<Published[]> | undefined;

/** The files that `deno publish --dry-run` lists. */
export function publishedFiles(): Promise<Published[]> {
  return asked ??= (async () => {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["publish", "--dry-run", "--allow-dirty", "--no-check"],
      cwd: ROOT,
      env: { NO_COLOR: "1" },
    }).output();
    const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
    if (code !== 0) throw new Error(text);
    const files = [...text.matchAll(/^\s+(file:\/\/\S+) \([\d.]+[A-Z]*B\)$/gm)].map(([, url]) => ({
      path: decodeURIComponent(url!.slice(ROOT.href.length)),
      size: Deno.statSync(new URL(url!)).size,
    }));
    if (files.length === 0) throw new Error(`no file is listed:\n${text}`);
    return files;
  })();
}
