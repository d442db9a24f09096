// Records a real run of the demo as docs/demo.svg: `deno run -A dev/record.ts`.

import { fileURLToPath } from "node:url";
import { writeWhole } from "../src/cli/write_whole.ts";

const COMMANDS = [
  ["plan", "--n-layer", "64", "--repeat-layers", "26,34"],
  ["--repeat-layers", "33,34", "--temp", "0.7", "-s", "3", "-n", "60"],
];
const COLUMNS = 100;

interface Line {
  text: string;
  kind: "command" | "stdout" | "stderr";
}

async function record(args: string[]): Promise<Line[]> {
  const lines: Line[] = [{
    kind: "command",
    text: `$ deno run -A mod.ts ${
      args.map((a) => /[ ;]/.test(a) ? JSON.stringify(a) : a).join(" ")
    }`,
  }];
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", fileURLToPath(new URL("../mod.ts", import.meta.url)), ...args],
    stdout: "piped",
    stderr: "piped",
    env: { NO_COLOR: "1" },
  }).spawn();
  // One answer is a single write or many; what belongs together is joined before it is folded into lines.
  const read = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>, kind: Line["kind"]) => {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      const last = lines.at(-1)!;
      if (last.kind === kind && !last.text.endsWith("\n")) last.text += text;
      else lines.push({ kind, text });
    }
  };
  await Promise.all([read(child.stdout, "stdout"), read(child.stderr, "stderr")]);
  const { code } = await child.status;
  if (code !== 0) throw new Error(`${args.join(" ")} failed with code ${code}`);
  return lines.flatMap(({ text, kind }) =>
    text.replace(/\n$/, "").split("\n").flatMap((line) =>
      fold(line).map((part) => ({ text: part, kind }))
    )
  );
}

function fold(line: string): string[] {
  const parts: string[] = [];
  while (line.length > COLUMNS) {
    const space = line.lastIndexOf(" ", COLUMNS);
    const at = space > 20 ? space : COLUMNS;
    parts.push(line.slice(0, at));
    line = line.slice(at).trimStart();
  }
  return [...parts, line];
}

const escape = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const COLORS = { command: "#7ee787", stdout: "#f0f6fc", stderr: "#8b949e" };

const lines: Line[] = [];
for (const args of COMMANDS) {
  if (lines.length) lines.push({ text: "", kind: "stderr" });
  lines.push(...await record(args));
}
const [width, step] = [COLUMNS * 8.45 + 40, 20];
const height = lines.length * step + 40;
const rows = lines.map(({ text, kind }, i) =>
  `<text x="20" y="${35 + i * step}" fill="${COLORS[kind]}" xml:space="preserve">${
    escape(text)
  }</text>`
);
await writeWhole(
  fileURLToPath(new URL("../docs/demo.svg", import.meta.url)),
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
    `font-family="ui-monospace,SFMono-Regular,Menlo,DejaVu Sans Mono,monospace" font-size="14">\n` +
    `<rect width="100%" height="100%" rx="8" fill="#0d1117"/>\n${rows.join("\n")}\n</svg>\n`,
);
