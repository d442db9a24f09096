/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />

// Runs the oracle program once and sends its lines, then the files it wrote.

import { installPortWorkers } from "../../src/engine/port_worker.ts";

interface FileSystem {
  readdir(path: string): string[];
  readFile(path: string): Uint8Array;
  mkdir(path: string): void;
}

self.onmessage = async ({ data }: MessageEvent<{ js: string; args: string[] }>) => {
  installPortWorkers((message, transfer = []) => self.postMessage(message, transfer));
  const { default: create } = await import(data.js);
  const last = /^\d+ passed, \d+ failed/;
  const written = /^(\d+) files? written/;
  let fs: FileSystem | undefined;
  const print = (line: string) => {
    self.postMessage({ op: "line", line });
    if (last.test(line)) self.postMessage({ op: "end" });
    if (written.test(line)) {
      for (const name of fs!.readdir("/out")) {
        if (name.endsWith(".gguf")) {
          self.postMessage({ op: "file", name, bytes: fs!.readFile(`/out/${name}`) });
        }
      }
      self.postMessage({ op: "end" });
    }
  };
  const instance = await create({
    arguments: data.args,
    mainScriptUrlOrBlob: data.js,
    locateFile: (name: string) => new URL(name, data.js).href,
    print,
    printErr: (line: string) => self.postMessage({ op: "line", line }),
    onAbort: (reason: unknown) => self.postMessage({ op: "abort", reason: String(reason) }),
    rys: { event() {}, read() {} },
  });
  fs = instance.FS;
};
