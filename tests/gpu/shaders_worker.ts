/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />

// Runs the program that emits every shader of llama.cpp's WebGPU backend; sends them in parts.

import type { ShaderVariant } from "./shaders.ts";

interface Instance {
  wasmMemory: WebAssembly.Memory;
  callMain(args: string[]): void;
}

const VARIANT = 0, END = 1; // kinds of what cpp/tests/rys-shaders.cpp hands over

self.onmessage = async ({ data }: MessageEvent<{ js: string; args: string[] }>) => {
  let part: ShaderVariant[] = [];
  let missed: string[] | undefined;
  const messages: string[] = [];
  const { default: create } = await import(data.js);
  const instance: Instance = await create({
    noInitialRun: true,
    mainScriptUrlOrBlob: data.js,
    locateFile: (name: string) => new URL(name, data.js).href,
    print: (line: string) => messages.push(line),
    printErr: (line: string) => messages.push(line),
    onAbort: (reason: unknown) => messages.push(String(reason)),
    rys: {
      event(_req: number, kind: number, _aux: number, at: number, n: number) {
        const bytes = new Uint8Array(instance.wasmMemory.buffer, at, n).slice();
        const fields = new TextDecoder().decode(bytes).split("\0");
        if (kind === END) missed = fields[0]!.split(" ").filter(Boolean);
        if (kind !== VARIANT) return;
        const [set, fn, threads, memory, subgroups, label, entry, constants, source] = fields as [
          string,
          string,
          ...string[],
        ];
        part.push({
          set,
          fn,
          threads: Number(threads),
          memory: Number(memory),
          subgroups: subgroups === "1",
          label: label!,
          entry: entry!,
          constants: Object.fromEntries(
            constants!.split(",").filter(Boolean).map((text) => {
              const [name, value] = text.split("=");
              return [name!, Number(value)];
            }),
          ),
          source: source!,
        });
        if (part.length < 200) return;
        self.postMessage({ variants: part });
        part = [];
      },
    },
  });
  instance.callMain(data.args);
  self.postMessage({ variants: part });
  self.postMessage({ missed, messages });
};
