import { describeModel, type ModelDescription } from "../../gguf/mod.ts";
import { UsageError } from "../errors.ts";
import type { Flags } from "../flags/parse_flags.ts";
import { demoModel, givenModel, readNamed } from "../model_file.ts";
import { layerStrip, modelLines, stripLegend, typeTable } from "../terminal/model_text.ts";
import { alignLines } from "../terminal/plan_text.ts";
import { type Shell, showsColour, styles } from "../terminal/shell.ts";

/**
 * The command `inspect`.
 *
 * @param flags The model, and `--json`.
 * @param shell Where to write.
 */
export async function inspect(flags: Flags, shell: Shell): Promise<number> {
  const name = namedModel(flags, shell);
  const { header, files, isRemote } = await readNamed(name, shell, flags);
  const model = describeModel(header, files.length);
  if (flags.on("json")) {
    await shell.out(JSON.stringify(descriptionJson(name, files, isRemote, model)) + "\n");
    return 0;
  }
  const style = styles(showsColour(Deno.stdout));
  const strip = model.layers.length === 0
    ? ""
    : `\n${layerStrip(model, style).join("\n")}\n${stripLegend(model)}\n`;
  await shell.out(
    alignLines(modelLines(model), style) + strip + `\n${typeTable(model).join("\n")}\n`,
  );
  for (const note of model.notes) shell.note(note);
  return 0;
}

/** The model that is named, by `-m` or after the command. */
function namedModel(flags: Flags, shell: Shell): string {
  const [word, ...more] = flags.topics;
  // A variable of the environment gives way to a word; a flag says the same a second time.
  const isTwice = word !== undefined && flags.has("model") && flags.name("model").startsWith("-");
  if (isTwice || more.length > 0) {
    throw new UsageError("inspect shows one model: give its name once");
  }
  const given = word ?? givenModel(flags);
  const name = given ?? demoModel();
  if (name === undefined) {
    throw new UsageError("inspect needs a model: a file, a URL, or hf:owner/repo");
  }
  if (given === undefined) shell.note("no model is named, so this is the demo model");
  return name;
}

function descriptionJson(
  name: string,
  files: string[],
  isRemote: boolean,
  model: ModelDescription,
): Record<string, unknown> {
  return {
    model: name,
    remote: isRemote,
    files,
    architecture: model.architecture,
    name: model.name,
    size_label: model.sizeLabel,
    file_bytes: model.fileBytes,
    weight_bytes: model.weightBytes,
    n_params: model.nParams,
    bits_per_weight: model.bitsPerWeight,
    file_type: model.fileType,
    types: model.types,
    n_layer: model.nLayer,
    n_layer_nextn: model.nextn,
    layers: model.layers.map(({ kind, hasExperts, isNextn, hasKv, bytes }) => ({
      kind,
      experts: hasExperts,
      nextn: isNextn,
      kv: hasKv,
      bytes,
    })),
    n_swa: model.nSwa,
    n_expert: model.nExpert,
    n_expert_used: model.nExpertUsed,
    n_ctx_train: model.contextLength,
    n_embd: model.embeddingLength,
    n_vocab: model.nVocab,
    tokenizer: model.tokenizer,
    chat_template: model.chatTemplate === null ? null : {
      length: model.chatTemplate.length,
      others: model.chatTemplate.others,
      tools: model.chatTemplate.tools,
      tool_calls: model.chatTemplate.toolCalls,
      system: model.chatTemplate.system,
      thinking: model.chatTemplate.thinking,
      media: model.chatTemplate.media,
    },
    layer_plan: model.layerPlan,
    plans: model.plans.plans,
    plans_why: model.plans.why,
    notes: model.notes,
  };
}
