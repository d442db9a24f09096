import type { LayerDescription, LayerKind, ModelDescription } from "../../gguf/mod.ts";
import { formatBytes } from "./plan_text.ts";
import type { Styles } from "./shell.ts";

/** The mark of a kind of layer in a strip. */
const MARKS: Readonly<Record<LayerKind, string>> = {
  "attention": "A",
  "window": "w",
  "recurrent": "r",
  "attention+recurrent": "H",
  "none": "-",
};

/**
 * Layers drawn with one mark each; next-token layers are after a bar. Where some layers have experts, a second line marks
 * those with E.
 *
 * @param model The model.
 * @param styles Colours.
 * @param width Marks in a line.
 * @returns Lines, each with the number of its first layer before it.
 */
export function layerStrip(model: ModelDescription, styles: Styles, width = 64): string[] {
  const { layers, nLayer } = model;
  const digits = String(Math.max(0, layers.length - 1)).length;
  const someExperts = layers.some((layer) => layer.hasExperts);
  const lines: string[] = [];
  for (let first = 0; first < layers.length; first += width) {
    const row = layers.slice(first, first + width);
    const draw = (mark: (layer: LayerDescription) => string) =>
      row.map((layer, i) =>
        (first + i === nLayer && first + i > 0 ? styles.yellow("|") : "") + mark(layer)
      ).join("");
    lines.push(
      `${String(first).padStart(digits)} ${draw(({ kind }) => coloured(kind, styles))}`,
    );
    if (someExperts) {
      lines.push(
        `${" ".repeat(digits)} ${
          draw((layer) => layer.hasExperts ? styles.cyan("E") : styles.dim("·"))
        }`,
      );
    }
  }
  return lines;
}

function coloured(kind: LayerKind, { bold, green, yellow, dim }: Styles): string {
  const mark = MARKS[kind];
  if (kind === "attention") return bold(mark);
  if (kind === "window") return green(mark);
  return kind === "none" ? dim(mark) : yellow(mark);
}

/** What the marks of a strip mean, and how many there are of each. */
export function stripLegend(model: ModelDescription): string {
  const trunk = model.layers.slice(0, model.nLayer);
  const of = (kind: LayerKind) => trunk.filter((layer) => layer.kind === kind).length;
  const experts = trunk.filter((layer) => layer.hasExperts).length;
  const shared =
    trunk.filter(({ kind, hasKv }) => !hasKv && (kind === "attention" || kind === "window")).length;
  const parts: [number, string][] = [
    [of("attention"), "A attention"],
    [of("window"), `w window of ${model.nSwa}`],
    [of("recurrent"), "r recurrent"],
    [of("attention+recurrent"), "H attention and recurrent"],
    [of("none"), "- neither"],
    [experts, `E ${model.nExpertUsed} of ${model.nExpert} experts`],
    [model.nextn, "| next-token (MTP)"],
  ];
  const text = parts.filter(([n]) => n > 0).map(([n, what]) => `${what}: ${n}`).join(", ");
  return shared > 0 && shared < trunk.length
    ? `${text}; ${shared} attend with keys and values of earlier layers`
    : text;
}

/** Rows of the table of number formats: name, tensors, bytes, share. */
export function typeTable({ types, weightBytes }: ModelDescription): string[] {
  const rows = types.map(({ type, tensors, values, bytes }) => [
    type,
    String(tensors),
    formatBytes(bytes),
    `${(100 * bytes / Math.max(1, weightBytes)).toFixed(1)} %`,
    (8 * bytes / Math.max(1, values)).toFixed(2),
  ]);
  const head = ["type", "tensors", "bytes", "share", "bits/weight"];
  const widths = head.map((name, i) => Math.max(name.length, ...rows.map((row) => row[i]!.length)));
  return [head, ...rows].map((row) =>
    row.map((cell, i) => i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)).join("  ")
  );
}

/** A number of parameters: `1.7 M`. */
export function formatCount(n: number): string {
  const units = ["", " k", " M", " B", " T"];
  let unit = 0;
  for (; n >= 1000 && unit < units.length - 1; unit++) n /= 1000;
  return `${unit === 0 ? n : n.toFixed(n < 10 ? 2 : n < 100 ? 1 : 0)}${units[unit]}`;
}

/** The lines that describe a model, as `name = value`. */
export function modelLines(model: ModelDescription): [name: string, value: string][] {
  const { architecture, sizeLabel, nLayer, nextn, nFiles, plans } = model;
  const files = nFiles > 1 ? ` in ${nFiles} files` : "";
  const type = model.fileType === "" ? "" : `${model.fileType}, `;
  const lines: [string, string][] = [
    ["model", model.name === "" ? "(no name)" : model.name],
    ["architecture", architecture === "" ? "(none)" : architecture],
    [
      "parameters",
      `${formatCount(model.nParams)}${sizeLabel === "" ? "" : ` (called ${sizeLabel})`}`,
    ],
    [
      "weights",
      `${formatBytes(model.weightBytes)}, ${type}${model.bitsPerWeight.toFixed(2)} bits per weight`,
    ],
    ["file", `${formatBytes(model.fileBytes)}${files}`],
    ["n_layer", `${nLayer}${nextn > 0 ? ` and ${nextn} next-token` : ""}`],
    ["embedding", String(model.embeddingLength)],
    ["context", model.contextLength === 0 ? "(not said)" : `${model.contextLength} tokens`],
    ["vocabulary", model.nVocab === 0 ? "(none)" : vocabulary(model)],
    ["chat template", templateText(model)],
  ];
  if (model.layerPlan !== "") lines.push(["own plan", model.layerPlan]);
  lines.push([
    "plans",
    {
      any: "any",
      some: `some: ${plans.why}`,
      none: `none: ${plans.why}`,
    }[plans.plans],
  ]);
  return lines;
}

function vocabulary({ nVocab, tokenizer }: ModelDescription): string {
  return `${nVocab} tokens${tokenizer === "" ? "" : ` (${tokenizer})`}`;
}

function templateText({ chatTemplate }: ModelDescription): string {
  if (chatTemplate === null) return "none";
  const { tools, toolCalls, system, thinking, media, others } = chatTemplate;
  const parts = [
    ...system ? ["system messages"] : [],
    ...tools || toolCalls ? ["tools"] : [],
    ...thinking ? ["thinking"] : [],
    ...media ? ["images or sound"] : [],
  ];
  const more = others.length > 0 ? `; others: ${others.join(", ")}` : "";
  return `yes${parts.length > 0 ? `, with ${parts.join(", ")}` : ""}${more}`;
}
