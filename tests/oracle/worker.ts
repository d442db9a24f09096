/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />

// Runs the oracle program once, with files under /in; sends its lines, and at its end the files it wrote under /out.

import { installPortWorkers } from "../../src/engine/port_worker.ts";

interface Instance {
  FS: {
    mkdir(path: string): void;
    readdir(path: string): string[];
    readFile(path: string): Uint8Array<ArrayBuffer>;
    writeFile(path: string, bytes: Uint8Array, options: { canOwn: boolean }): void;
  };
}

interface Job {
  js: string;
  args: string[];
  inputs: ReadonlyMap<string, Uint8Array>;
}

self.onmessage = async ({ data }: MessageEvent<Job>) => {
  installPortWorkers((message, transfer = []) => self.postMessage(message, transfer));
  const { default: create } = await import(data.js);
  const line = (text: string) => self.postMessage({ op: "line", line: text });
  let instance: Instance;
  await create({
    arguments: data.args,
    mainScriptUrlOrBlob: data.js,
    locateFile: (name: string) => new URL(name, data.js).href,
    preRun: [(module: Instance) => {
      instance = module;
      instance.FS.mkdir("/in");
      instance.FS.mkdir("/out");
      for (const [name, bytes] of data.inputs) {
        instance.FS.writeFile(`/in/${name}`, bytes, { canOwn: true });
      }
    }],
    print: line,
    printErr: line,
    onAbort: (reason: unknown) => self.postMessage({ op: "abort", reason: String(reason) }),
    onExit(code: number) {
      for (const name of instance.FS.readdir("/out").filter((name) => !name.startsWith("."))) {
        const bytes = instance.FS.readFile(`/out/${name}`);
        self.postMessage({ op: "file", name, bytes }, [bytes.buffer]);
      }
      self.postMessage({ op: "end", code });
    },
    rys: { event() {}, read() {} },
  });
};
