import { CACHE_TYPES, type CacheType } from "../plan/cost.ts";
import { COMMANDS, type Group, type Option, type Scope } from "./option.ts";

const ALL = COMMANDS;
const ENGINE = ["run", "chat", "serve", "logits", "bench"] as const;
const TALK = ["run", "chat"] as const;
const NAMING = [...ENGINE, "plan", "inspect", "export"] as const;
const SERVED = ["run", "chat", "serve"] as const;
const SERVE = ["serve"] as const;

/** The element types that a KV cache can have. */
const KV_TYPES = Object.keys(CACHE_TYPES) as CacheType[];

/** The samplers by llama.cpp's names, and their letters. */
const SAMPLERS = {
  penalties: "e",
  dry: "d",
  top_n_sigma: "s",
  top_k: "k",
  typ_p: "y",
  top_p: "p",
  min_p: "m",
  xtc: "x",
  temperature: "t",
  infill: "i",
  adaptive_p: "a",
};
const SAMPLER_NAMES = Object.keys(SAMPLERS);
const SAMPLER_LETTERS = Object.values(SAMPLERS);

const INT_MAX = 2 ** 31 - 1;
/** How far back a sampler may look, in tokens: upstream allocates that many. */
const LOOK_BACK = 2 ** 18;
/** The longest time that a timer can count, in seconds. */
const MAX_SECONDS = 2_000_000;
const MIB = 2 ** 20;

const on = { kind: "switch" } as const;
const text = (value: string) => ({ kind: "text", value }) as const;
const choice = <const C extends string>(choices: readonly C[], value = choices.join("|")) =>
  ({ kind: "text", value, choices }) as const;
const whole = (min = -INT_MAX - 1, max = INT_MAX, value = "N") =>
  ({ kind: "integer", value, min, max }) as const;
const real = (min = -Infinity, max = Infinity, value = "X") =>
  ({ kind: "number", value, min, max }) as const;
const seconds = { ...real(0.001, MAX_SECONDS, "S"), commands: SERVE, group: "Limits" } as const;
const group = <const G extends Group>(name: G) => ({ group: name }) as const;

const MODEL = { ...group("Model"), commands: ENGINE } as const;
const PLAN = group("Plan");
const INPUT = group("Input");
const OUTPUT = group("Output");
const CONTEXT = { ...group("Context"), commands: ENGINE } as const;
const SAMPLING = { ...group("Sampling"), commands: SERVED } as const;
const CHAT = { ...group("Chat"), commands: SERVED } as const;
const DRAFT = { ...group("Speculative decoding"), commands: SERVED } as const;
const SERVER = { ...group("Server"), commands: SERVE } as const;
const LIMITS = { ...group("Limits"), commands: SERVE } as const;
const MEASURING = { ...group("Measuring"), commands: ["bench"] } as const;
const GENERAL = group("General");

const load = { of: ["load"] } as const;
const context = { of: ["context"] } as const;
const generate = { of: ["generate"] } as const;
const server = { of: ["server"] } as const;
const listen = { of: ["listen"] } as const;
const own = { own: true } as const;

/**
 * All options of the library and the command line, one row each. Checks, help, environment variables, `serverArgs()` and
 * llama.cpp's arguments are derived from it. A name means one thing within a command, and either takes a value in all
 * commands or in none.
 */
// deno-fmt-ignore
export const OPTIONS = [
  // Model
  { id: "model", names: ["-m", "--model"], ...text("MODEL"), ...group("Model"), commands: NAMING, ...server, ...own,
    env: "LLAMA_ARG_MODEL",
    help: "GGUF file, or any shard of a split one; or hf:OWNER/REPO[:QUANT], hf:OWNER/REPO/FILE.gguf or a URL, which is fetched into the cache; " +
      "plan and inspect read only its header (default: the demo model)" },
  { id: "hfRepo", names: ["-hf", "-hfr", "--hf-repo"], ...text("OWNER/REPO[:QUANT]"), ...group("Model"), commands: NAMING,
    env: "LLAMA_ARG_HF_REPO",
    help: "model on the Hugging Face hub (default quantisation: Q4_K_M, else Q8_0, else the first file)" },
  { id: "hfFile", names: ["-hff", "--hf-file"], ...text("FILE"), ...group("Model"), commands: NAMING, env: "LLAMA_ARG_HF_FILE",
    help: "file in that repository, in place of a quantisation" },
  { id: "modelUrl", names: ["-mu", "--model-url"], ...text("URL"), ...group("Model"), commands: NAMING, env: "LLAMA_ARG_MODEL_URL",
    help: "URL of the model" },
  { id: "hfToken", names: ["-hft", "--hf-token"], ...text("TOKEN"), ...group("Model"), commands: [...NAMING, "pull"], env: "HF_TOKEN",
    help: "token for private and gated repositories; other users of the machine can see the command line, but not the variable " +
      "(default: the one that hf auth login saved)" },
  { id: "offline", names: ["--offline"], ...on, ...group("Model"), commands: [...NAMING, "pull"], env: "LLAMA_ARG_OFFLINE",
    help: "use models in the cache, and no network" },
  { id: "lora", names: ["--lora"], ...text("FILE,..."), ...MODEL, ...context, ...own,
    help: "LoRA adapters; they reach every pass of a repeated layer" },
  { id: "loraScaled", names: ["--lora-scaled"], ...text("FILE:SCALE,..."), ...MODEL,
    help: "LoRA adapters with a scale each" },
  { id: "controlVector", names: ["--control-vector"], ...text("FILE,..."), ...MODEL,
    help: "control vectors, which steer the layers they name in every pass" },
  { id: "controlVectorScaled", names: ["--control-vector-scaled"], ...text("FILE:SCALE,..."), ...MODEL,
    help: "control vectors with a scale each" },
  { id: "controlVectorRange", names: ["--control-vector-layer-range"], ...text("FIRST LAST"), takes: 2, ...MODEL, ...context, ...own,
    help: "layers that control vectors are applied to, the first being 1 (default: all)" },
  { id: "overrideKv", names: ["--override-kv"], ...text("KEY=TYPE:VALUE,..."), form: /^[^=]+=(?:int|float|bool|str):/, repeats: true, ...MODEL, llama: "--override-kv", atLoad: true,
    help: "values in place of those in the file, e.g. tokenizer.ggml.add_bos_token=bool:false" },
  { id: "gpuLayers", names: ["-ngl", "--n-gpu-layers", "--gpu-layers"], ...text("N|all|auto"), ...MODEL, ...load, ...own,
    env: "LLAMA_ARG_N_GPU_LAYERS",
    help: "layers whose weights go to the GPU, from the last one on, the output layer counting as one; 0: none, and no GPU is " +
      "looked for (default: all, the same as auto)" },
  { id: "gpu", names: ["--gpu"], ...choice(["auto", "on", "off", "required"], "auto|off|required"), bare: "required", ...MODEL, commands: [...ENGINE, "plan"], ...load, ...own,
    default: "auto",
    help: "auto: compute on the GPU if there is a hardware one; off: on the CPU; required, on, or --gpu alone: on any " +
      "GPU, or fail" },
  { id: "powerPreference", names: ["--gpu-power"], ...choice(["low-power", "high-performance"]), ...MODEL, ...load,
    help: "which GPU to use if there are several (default: the system's choice)" },
  { id: "repack", names: ["--repack"], off: ["-nr", "--no-repack"], ...on, ...MODEL, ...load, llama: ["--repack", "--no-repack"], atLoad: true,
    env: "LLAMA_ARG_REPACK",
    help: "rearrange weights while loading for faster kernels on the CPU; off: compute bit for bit as llama.cpp does (default: on)" },

  // Plan
  { id: "aliases", names: ["-a", "--alias"], ...text("NAME|NAME=SPEC"), repeats: true, ...PLAN, commands: SERVE, ...server, ...own,
    env: "LLAMA_ARG_ALIAS", envSeparator: "&",
    help: "a name for the model, or several with commas: requests for it run the default plan, answers carry the first; with =SPEC, a " +
      "name for that plan. May be given several times" },
  { id: "strictModels", names: ["--strict-models"], ...on, ...PLAN, commands: SERVE, ...server,
    help: "refuse unknown model names (default: they run the default plan)" },
  { id: "maxContexts", names: ["--max-contexts"], ...whole(1, 64), default: 4, ...PLAN, commands: SERVE, ...server,
    env: "RYS_MAX_CONTEXTS",
    help: "most contexts at once, one for each plan in use; an idle one makes room" },
  { id: "memoryBudget", names: ["--memory-budget"], ...whole(1, INT_MAX, "MIB"), unit: MIB, ...PLAN, commands: SERVE, ...server, ...own,
    help: "MiB that all contexts together may take (default: what WASM memory has besides the weights; with all layers on a GPU, what " +
      "it has room for)" },
  { id: "repeatLayers", names: ["--repeat-layers"], ...text("SPEC"), ...PLAN, commands: ["run", "chat", "serve", "plan", "logits", "export"],
    of: ["context", "server"], ...own, env: "LLAMA_ARG_REPEAT_LAYERS",
    help: 'layers to run again: "26,34" (26..33 once more), "26,34x2" (twice more), "43,45;28,34", "layers:0..33,33,34..63", ' +
      '"none", or @FILE with a recipe (YAML or JSON)' },
  { id: "repeatLayersList", names: ["--repeat-layers"], ...text("SPEC"), repeats: true, ...PLAN, commands: ["bench"],
    env: "LLAMA_ARG_REPEAT_LAYERS",
    help: "a plan (or @FILE) to compare with none; may be given several times" },
  { id: "nLayer", names: ["--n-layer"], ...whole(1, 512), ...PLAN, commands: ["plan"],
    help: "number of layers of the model, in place of -m" },
  { id: "nextn", names: ["--nextn"], ...whole(0, 511), default: 0, ...PLAN, commands: ["plan"],
    help: "number of next-token (MTP) layers after those" },
  { id: "from", names: ["--from"], ...text("FILE"), ...PLAN, commands: ["plan"],
    help: "read the plan from a file: the grammar, or a recipe in YAML or JSON (mergekit, rys_relayer, RYS, layer_map); " +
      '"-" is standard input' },
  { id: "to", names: ["--to"], ...choice(["mergekit", "rys_relayer", "layers", "spec"]), ...PLAN, commands: ["plan"],
    help: "write the plan in another form" },
  { id: "suggest", names: ["--suggest"], ...on, ...PLAN, commands: ["plan"],
    help: "plans to try on this model: those published for it, else blocks in the usual places" },
  { id: "source", names: ["--source"], ...text("NAME"), ...PLAN, commands: ["plan", "export"],
    help: "the model's folder or repository, for a plan in the form of mergekit or rys_relayer (default: null)" },
  { id: "planOnly", names: ["--plan-only"], ...on, ...PLAN, commands: ["export"],
    help: "copy the layers as they are, and write the plan into the file's metadata (rys.layer_plan)" },

  // Input
  { id: "prompt", names: ["-p", "--prompt"], ...text("TEXT"), ...INPUT, commands: ["run", "chat", "logits"],
    help: "the prompt; in chat, the first message" },
  { id: "file", names: ["-f", "--file"], ...text("FILE"), ...INPUT, commands: ["run", "chat", "logits"],
    help: 'read the prompt from a file; "-" is standard input' },
  { id: "tokens", names: ["--tokens"], ...text("1,2,3"), ...INPUT, commands: ["logits"],
    help: "token numbers in place of a prompt, for models without a tokenizer" },
  { id: "escape", names: ["-e", "--escape"], off: ["--no-escape"], ...on, ...INPUT, commands: ["run", "chat", "serve", "logits"],
    llama: ["--escape", "--no-escape"],
    help: "interpret \\n, \\t, \\x41 and the like in texts on the command line (default), or leave backslashes as they are" },

  // Output
  { id: "maxTokens", names: ["-n", "--predict", "--n-predict"], ...whole(-2), least: -1, ...OUTPUT, commands: SERVED, ...generate,
    llama: "--predict", field: "n_predict", env: "LLAMA_ARG_N_PREDICT",
    help: "most tokens to generate; -1 or -2: until the model ends or the context is full (default)" },
  { id: "stop", names: ["-r", "--reverse-prompt"], ...text("TEXT"), repeats: true, ...OUTPUT, commands: SERVED, ...generate, ...own,
    llama: "--reverse-prompt",
    help: "stop at this text; may be given several times" },
  { id: "ignoreEos", names: ["--ignore-eos"], ...on, ...OUTPUT, commands: SERVED, ...generate, llama: "--ignore-eos", field: "ignore_eos",
    help: "keep generating where the model would end" },
  { id: "output", names: ["-o", "--output", "--output-file"], ...text("FILE"), ...OUTPUT, commands: ["logits"],
    help: "write the logits: little-endian float32, one row of n_vocab for each token" },
  { id: "exportFile", names: ["-o", "--output", "--output-file"], ...text("FILE"), ...OUTPUT, commands: ["export"],
    help: "the file to write; several are named after it, as in out-00001-of-00003.gguf" },
  { id: "format", names: ["--format"], ...choice(["gguf", "mergekit", "rys"]), default: "gguf", ...OUTPUT, commands: ["export"],
    help: "a model; or, to standard output without -o, the plan as mergekit's YAML or as a rys_relayer object" },
  { id: "splitMaxSize", names: ["--split-max-size"], ...text("N(M|G)"), form: /^[1-9]\d{0,8}[MG]$/, ...OUTPUT, commands: ["export"],
    help: "several files, each with at most N megabytes (M) or gigabytes (G) of tensors" },
  { id: "splitMaxTensors", names: ["--split-max-tensors"], ...whole(1), ...OUTPUT, commands: ["export"],
    help: "several files, each with at most N tensors" },
  { id: "force", names: ["--force"], ...on, ...OUTPUT, commands: ["export"],
    help: "replace files that are there" },
  { id: "top", names: ["--top"], ...whole(0, 1000), default: 10, ...OUTPUT, commands: ["logits"],
    help: "show the N likeliest tokens of the last row" },
  { id: "json", names: ["--json"], ...on, ...OUTPUT, commands: ["run", "plan", "inspect", "export", "logits", "bench", "doctor", "pull", "ls", "verify"],
    help: "print one JSON object" },
  { id: "quiet", names: ["--quiet"], ...on, ...OUTPUT, commands: [...ENGINE, "export", "pull"],
    help: "no boot log, notes or speeds on standard error; warnings and errors stay" },

  // Context
  { id: "nCtx", names: ["-c", "--ctx-size"], ...whole(0), least: 1, ...group("Context"), commands: [...ENGINE, "plan"],
    of: ["context", "server"], llama: "-c", env: "LLAMA_ARG_CTX_SIZE",
    help: "context size in tokens, rounded up to a multiple of 256; 0: the model's (default: the model's, at most 4096)" },
  { id: "nBatch", names: ["-b", "--batch-size"], ...whole(1), default: 512, ...CONTEXT, commands: [...ENGINE, "plan"], ...context, llama: "-b", env: "LLAMA_ARG_BATCH",
    help: "tokens handed to the model at once" },
  { id: "nUbatch", names: ["-ub", "--ubatch-size"], ...whole(1), default: 512, ...CONTEXT, commands: [...ENGINE, "plan"], ...context, llama: "-ub", env: "LLAMA_ARG_UBATCH",
    help: "tokens computed at once" },
  { id: "nParallel", names: ["-np", "--parallel"], ...whole(1, 256), ...group("Context"), commands: [...SERVED, "plan"], of: ["context", "server"],
    llama: "-np", env: "LLAMA_ARG_N_PARALLEL",
    help: "slots of the context: requests that run at once (default: 1; serve: 4)" },
  { id: "threads", names: ["-t", "--threads"], ...whole(-1, 512), least: 1, ...CONTEXT, ...context, llama: "-t", env: "LLAMA_ARG_THREADS",
    help: "threads to compute with (default: the number of cores, at most 8)" },
  { id: "cacheTypeK", names: ["-ctk", "--cache-type-k"], ...choice(KV_TYPES, "TYPE"), default: "f16", ...group("Context"),
    commands: [...ENGINE, "plan"], ...context, llama: "-ctk", env: "LLAMA_ARG_CACHE_TYPE_K",
    help: `element type of the K cache: ${KV_TYPES.join(", ")}` },
  { id: "cacheTypeV", names: ["-ctv", "--cache-type-v"], ...choice(KV_TYPES, "TYPE"), default: "f16", ...group("Context"),
    commands: [...ENGINE, "plan"], ...context, llama: "-ctv", env: "LLAMA_ARG_CACHE_TYPE_V",
    help: "element type of the V cache" },
  { id: "flashAttention", names: ["-fa", "--flash-attn"], ...choice(["on", "off", "auto"]), default: "auto", bare: "on",
    words: { "1": "on", "true": "on", "enabled": "on", "0": "off", "false": "off", "disabled": "off", "-1": "auto" },
    ...CONTEXT, commands: [...ENGINE, "plan"], ...context, llama: "-fa", env: "LLAMA_ARG_FLASH_ATTN",
    help: "flash attention" },
  { id: "swaFull", names: ["--swa-full"], ...on, ...group("Context"), commands: [...ENGINE, "plan"], ...context, llama: "--swa-full",
    env: "LLAMA_ARG_SWA_FULL",
    help: "full-size cache for sliding-window layers" },
  { id: "contextShift", names: ["--context-shift"], off: ["--no-context-shift"], ...on, ...CONTEXT, ...context,
    llama: ["--context-shift", "--no-context-shift"], env: "LLAMA_ARG_CONTEXT_SHIFT",
    help: "drop the oldest tokens when the context is full, instead of ending" },

  { id: "keep", names: ["--keep"], ...whole(-1), default: 0, ...group("Context"), commands: SERVED, llama: "--keep",
    help: "tokens of the prompt that --context-shift leaves in place; -1: all of them" },
  { id: "cachePromptDefault", names: ["--cache-prompt"], off: ["--no-cache-prompt"], ...on, default: "on", ...group("Context"), commands: SERVED,
    llama: ["--cache-prompt", "--no-cache-prompt"], env: "LLAMA_ARG_CACHE_PROMPT",
    help: "reuse the part of a prompt that it has in common with the slot's last one" },
  { id: "cacheReuse", names: ["--cache-reuse"], ...whole(0), default: 0, ...group("Context"), commands: SERVED, llama: "--cache-reuse",
    env: "LLAMA_ARG_CACHE_REUSE",
    help: "least number of tokens in a run that is reused from another place in the slot's last prompt; 0: off" },
  { id: "ctxCheckpoints", names: ["-ctxcp", "--ctx-checkpoints", "--swa-checkpoints"], ...whole(0, 1024), default: 32, ...group("Context"),
    commands: SERVED, llama: "--ctx-checkpoints", env: "LLAMA_ARG_CTX_CHECKPOINTS",
    help: "most states that a slot keeps to go back to, for models with sliding windows or recurrent layers" },
  { id: "kvOffload", names: ["-kvo", "--kv-offload"], off: ["-nkvo", "--no-kv-offload"], ...on, default: "on", ...CONTEXT,
    llama: ["--kv-offload", "--no-kv-offload"], env: "LLAMA_ARG_KV_OFFLOAD",
    help: "keep the KV cache on the GPU, if there is one" },
  { id: "ropeScaling", names: ["--rope-scaling"], ...choice(["none", "linear", "yarn"]), ...CONTEXT, llama: "--rope-scaling",
    env: "LLAMA_ARG_ROPE_SCALING_TYPE",
    help: "how positions are scaled (default: the model's way)" },
  { id: "ropeScale", names: ["--rope-scale"], ...real(1e-3, 1e6), ...CONTEXT, llama: "--rope-scale", env: "LLAMA_ARG_ROPE_SCALE",
    help: "how many times longer the context is than the model was trained for" },
  { id: "ropeFreqBase", names: ["--rope-freq-base"], ...real(0, 1e12), ...CONTEXT, llama: "--rope-freq-base", env: "LLAMA_ARG_ROPE_FREQ_BASE",
    help: "base frequency of RoPE (default: the model's)" },
  { id: "ropeFreqScale", names: ["--rope-freq-scale"], ...real(0, 1e6), ...CONTEXT, llama: "--rope-freq-scale", env: "LLAMA_ARG_ROPE_FREQ_SCALE",
    help: "1 / --rope-scale" },
  { id: "yarnOrigCtx", names: ["--yarn-orig-ctx"], ...whole(0), ...CONTEXT, llama: "--yarn-orig-ctx", env: "LLAMA_ARG_YARN_ORIG_CTX",
    help: "context size that the model was trained for, for YaRN (default: the model's)" },
  { id: "yarnExtFactor", names: ["--yarn-ext-factor"], ...real(-1, 1e6), ...CONTEXT, llama: "--yarn-ext-factor", env: "LLAMA_ARG_YARN_EXT_FACTOR",
    help: "YaRN's mix of extrapolation; 0: interpolation alone (default: the model's)" },
  { id: "yarnAttnFactor", names: ["--yarn-attn-factor"], ...real(-1, 1e6), ...CONTEXT, llama: "--yarn-attn-factor", env: "LLAMA_ARG_YARN_ATTN_FACTOR",
    help: "YaRN's scale of attention (default: the model's)" },
  { id: "yarnBetaSlow", names: ["--yarn-beta-slow"], ...real(-1, 1e6), ...CONTEXT, llama: "--yarn-beta-slow", env: "LLAMA_ARG_YARN_BETA_SLOW",
    help: "YaRN's high correction dimension (default: the model's)" },
  { id: "yarnBetaFast", names: ["--yarn-beta-fast"], ...real(-1, 1e6), ...CONTEXT, llama: "--yarn-beta-fast", env: "LLAMA_ARG_YARN_BETA_FAST",
    help: "YaRN's low correction dimension (default: the model's)" },

  // Sampling
  { id: "samplers", names: ["--samplers"], ...text("NAME;..."), parts: [";", SAMPLER_NAMES], ...SAMPLING, llama: "--samplers",
    help: "the samplers to use, in this order (default: penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature)" },
  { id: "samplerSeq", names: ["--sampler-seq", "--sampling-seq"], ...text("LETTERS"), parts: ["", SAMPLER_LETTERS], ...SAMPLING, llama: "--sampler-seq",
    help: `the same, with a letter for each: ${SAMPLER_NAMES.map((name, i) => `${SAMPLER_LETTERS[i]} ${name}`).join(", ")}` },
  { id: "seed", names: ["-s", "--seed"], ...whole(-1, 0xffff_ffff), ...SAMPLING, of: ["generate", "server"], llama: "--seed", field: "seed",
    help: "seed; -1: a random one for each answer, which reports it (default)" },
  { id: "temperature", names: ["--temp", "--temperature"], ...real(0, 1e6), default: 0.8, ...SAMPLING, ...generate,
    llama: "--temp", field: "temperature", env: "LLAMA_ARG_TEMPERATURE",
    help: "temperature; 0 takes the likeliest token" },
  { id: "topK", names: ["--top-k"], ...whole(-1), least: 0, default: 40, ...SAMPLING, ...generate, llama: "--top-k", field: "top_k", env: "LLAMA_ARG_TOP_K",
    help: "keep the N likeliest tokens; 0 or -1 keeps all" },
  { id: "topP", names: ["--top-p"], ...real(0, 1), default: 0.95, ...SAMPLING, ...generate, llama: "--top-p", field: "top_p", env: "LLAMA_ARG_TOP_P",
    help: "keep the likeliest tokens up to this probability" },
  { id: "minP", names: ["--min-p"], ...real(0, 1), default: 0.05, ...SAMPLING, ...generate, llama: "--min-p", field: "min_p", env: "LLAMA_ARG_MIN_P",
    help: "keep tokens at least this likely compared with the likeliest" },
  { id: "repeatPenalty", names: ["--repeat-penalty"], ...real(0, 1e6), default: 1, ...SAMPLING, ...generate,
    llama: "--repeat-penalty", field: "repeat_penalty", env: "LLAMA_ARG_REPEAT_PENALTY",
    help: "penalty on repeated tokens; 1: none" },
  { id: "repeatLastN", names: ["--repeat-last-n"], ...whole(-1, LOOK_BACK), default: 64, ...SAMPLING, ...generate,
    llama: "--repeat-last-n", field: "repeat_last_n",
    help: "how many tokens back penalties look; -1: all" },
  { id: "topNSigma", names: ["--top-n-sigma", "--top-nsigma"], ...real(-1, 1e6), default: -1, ...SAMPLING, llama: "--top-n-sigma", field: "top_n_sigma",
    help: "keep tokens whose logit is within N standard deviations of the largest; 0 or less: all" },
  { id: "typicalP", names: ["--typical", "--typical-p"], ...real(0, 1), default: 1, ...SAMPLING, llama: "--typical", field: "typical_p",
    help: "locally typical sampling; 1: off" },
  { id: "xtcProbability", names: ["--xtc-probability"], ...real(0, 1), default: 0, ...SAMPLING, llama: "--xtc-probability", field: "xtc_probability",
    help: "probability that XTC removes the likeliest tokens" },
  { id: "xtcThreshold", names: ["--xtc-threshold"], ...real(0, 1), default: 0.1, ...SAMPLING, llama: "--xtc-threshold", field: "xtc_threshold",
    help: "how likely a token must be for XTC to remove it; above 0.5: never" },
  { id: "dynatempRange", names: ["--dynatemp-range"], ...real(0, 1e6), default: 0, ...SAMPLING, llama: "--dynatemp-range", field: "dynatemp_range",
    help: "dynamic temperature: how far it goes to either side; 0: off" },
  { id: "dynatempExponent", names: ["--dynatemp-exp"], ...real(0, 1e6), default: 1, ...SAMPLING, llama: "--dynatemp-exp", field: "dynatemp_exponent",
    help: "exponent of dynamic temperature" },
  { id: "mirostat", names: ["--mirostat"], ...whole(0, 2), default: 0, ...SAMPLING, llama: "--mirostat", field: "mirostat",
    help: "Mirostat in place of the other samplers: 1, or 2 for its second version; 0: off" },
  { id: "mirostatLr", names: ["--mirostat-lr"], ...real(0, 1e6), default: 0.1, ...SAMPLING, llama: "--mirostat-lr", field: "mirostat_eta",
    help: "Mirostat's learning rate, eta" },
  { id: "mirostatEnt", names: ["--mirostat-ent"], ...real(0, 1e6), default: 5, ...SAMPLING, llama: "--mirostat-ent", field: "mirostat_tau",
    help: "Mirostat's target entropy, tau" },
  { id: "adaptiveTarget", names: ["--adaptive-target"], ...real(-1, 1), default: -1, ...SAMPLING, llama: "--adaptive-target", field: "adaptive_target",
    help: "adaptive-p: the probability near which tokens are chosen; -1: off" },
  { id: "adaptiveDecay", names: ["--adaptive-decay"], ...real(0, 0.99), default: 0.9, ...SAMPLING, llama: "--adaptive-decay", field: "adaptive_decay",
    help: "how slowly adaptive-p adapts" },
  { id: "dryMultiplier", names: ["--dry-multiplier"], ...real(0, 1e6), default: 0, ...SAMPLING, llama: "--dry-multiplier", field: "dry_multiplier",
    help: "DRY's penalty on sequences that repeat; 0: off" },
  { id: "dryBase", names: ["--dry-base"], ...real(1, 1e6), default: 1.75, ...SAMPLING, llama: "--dry-base", field: "dry_base",
    help: "how fast DRY's penalty grows with a sequence's length" },
  { id: "dryAllowedLength", names: ["--dry-allowed-length"], ...whole(0), default: 2, ...SAMPLING, llama: "--dry-allowed-length", field: "dry_allowed_length",
    help: "longest sequence that DRY lets repeat" },
  { id: "dryPenaltyLastN", names: ["--dry-penalty-last-n"], ...whole(-1, LOOK_BACK), default: 64, ...SAMPLING, llama: "--dry-penalty-last-n",
    field: "dry_penalty_last_n",
    help: "how many tokens back DRY looks; -1: all" },
  { id: "drySequenceBreakers", names: ["--dry-sequence-breaker"], ...text("TEXT"), repeats: true, ...SAMPLING, field: "dry_sequence_breakers",
    llama: "--dry-sequence-breaker",
    help: 'text that ends a sequence for DRY, in place of a newline, ":", "\"" and "*"; none: nothing ends one. May be given several times' },
  { id: "logitBias", names: ["-l", "--logit-bias"], ...text("TOKEN+BIAS"), form: /^\d+[+-](?:inf|\d*\.?\d+)$/, repeats: true, ...SAMPLING, llama: "--logit-bias",
    help: "what is added to a token's logit, e.g. 15043+1 or 15043-1. May be given several times" },
  { id: "presencePenalty", names: ["--presence-penalty"], ...real(-1e6, 1e6), default: 0, ...SAMPLING, ...generate,
    llama: "--presence-penalty", field: "presence_penalty", env: "LLAMA_ARG_PRESENCE_PENALTY",
    help: "penalty on tokens that have occurred" },
  { id: "frequencyPenalty", names: ["--frequency-penalty"], ...real(-1e6, 1e6), default: 0, ...SAMPLING, ...generate,
    llama: "--frequency-penalty", field: "frequency_penalty", env: "LLAMA_ARG_FREQUENCY_PENALTY",
    help: "penalty for each time a token has occurred" },
  { id: "grammar", names: ["--grammar"], ...text("GBNF"), ...SAMPLING, ...generate, ...own, field: "grammar",
    help: "a grammar that the answer must follow" },
  { id: "grammarFile", names: ["--grammar-file"], ...text("FILE"), ...SAMPLING,
    help: "the same from a file" },
  { id: "jsonSchema", names: ["-j", "--json-schema"], ...text("SCHEMA"), ...SAMPLING, ...generate, ...own, field: "json_schema",
    help: "a JSON schema that the answer must follow" },
  { id: "jsonSchemaFile", names: ["-jf", "--json-schema-file"], ...text("FILE"), ...SAMPLING,
    help: "the same from a file" },

  // Chat
  { id: "chat", names: ["--chat"], ...on, ...group("Chat"), commands: ["run"],
    help: "send the prompt as a chat message, through the model's chat template (default: unchanged)" },
  { id: "conversation", names: ["-cnv", "--conversation", "-i", "--interactive", "-if", "--interactive-first"], off: ["-no-cnv", "--no-conversation"], ...on, ...group("Chat"), commands: TALK,
    help: "converse with the model: the same as the command chat" },
  { id: "systemPrompt", names: ["-sys", "--system-prompt"], ...text("TEXT"), ...group("Chat"), commands: TALK,
    help: "system message; in run it implies --chat" },
  { id: "systemPromptFile", names: ["-sysf", "--system-prompt-file"], ...text("FILE"), ...group("Chat"), commands: TALK,
    help: "the same from a file" },
  { id: "singleTurn", names: ["-st", "--single-turn"], ...on, ...group("Chat"), commands: TALK,
    help: "end after one question and its answer" },
  { id: "chatTemplate", names: ["--chat-template"], ...text("JINJA|NAME"), ...CHAT, ...context, llama: "--chat-template",
    env: "LLAMA_ARG_CHAT_TEMPLATE",
    help: "chat template in place of the model's, or the name of a built-in one" },
  { id: "chatTemplateFile", names: ["--chat-template-file"], ...text("FILE"), ...CHAT, env: "LLAMA_ARG_CHAT_TEMPLATE_FILE",
    help: "the same from a file" },

  { id: "chatTemplateKwargs", names: ["--chat-template-kwargs"], ...text("JSON"), ...CHAT, llama: "--chat-template-kwargs",
    env: "LLAMA_ARG_CHAT_TEMPLATE_KWARGS",
    help: "an object with further variables for the chat template" },
  { id: "jinja", names: ["--jinja"], off: ["--no-jinja"], ...on, default: "on", ...CHAT, llama: ["--jinja", "--no-jinja"], env: "LLAMA_ARG_JINJA",
    help: "run the chat template itself; off: llama.cpp's own form of it, if it has one" },
  { id: "reasoning", names: ["-rea", "--reasoning"], ...choice(["on", "off", "auto"]), default: "auto",
    words: { "1": "on", "true": "on", "enabled": "on", "0": "off", "false": "off", "disabled": "off", "-1": "auto" }, ...CHAT,
    llama: "--reasoning", env: "LLAMA_ARG_REASONING",
    help: "whether the model should reason first, if its template can say so" },
  { id: "reasoningFormat", names: ["--reasoning-format"], ...choice(["none", "auto", "deepseek", "deepseek-legacy"]), default: "deepseek", ...CHAT,
    llama: "--reasoning-format", env: "LLAMA_ARG_THINK",
    help: "none: reasoning stays in the text; deepseek: it is given separately in reasoning_content; deepseek-legacy: both" },
  { id: "reasoningEffort", names: ["--reasoning-effort"], ...text("LEVEL"), ...CHAT, llama: "--reasoning-effort", env: "LLAMA_ARG_REASONING_EFFORT",
    help: "the reasoning effort passed to the chat template, e.g. low, medium or high" },
  { id: "reasoningBudget", names: ["--reasoning-budget"], ...whole(-1), default: -1, ...CHAT, llama: "--reasoning-budget", env: "LLAMA_ARG_THINK_BUDGET",
    help: "most tokens to reason with; 0: none, -1: no limit" },
  { id: "reasoningBudgetMessage", names: ["--reasoning-budget-message"], ...text("TEXT"), ...CHAT, llama: "--reasoning-budget-message",
    env: "LLAMA_ARG_THINK_BUDGET_MESSAGE",
    help: "text that ends reasoning which has used up the budget" },
  { id: "reasoningPreserve", names: ["--reasoning-preserve"], off: ["--no-reasoning-preserve"], ...on, ...CHAT,
    llama: ["--reasoning-preserve", "--no-reasoning-preserve"], env: "LLAMA_ARG_REASONING_PRESERVE",
    help: "keep reasoning in a chat's history, if the template can" },
  { id: "skipChatParsing", names: ["--skip-chat-parsing"], off: ["--no-skip-chat-parsing"], ...on, ...CHAT,
    llama: ["--skip-chat-parsing", "--no-skip-chat-parsing"], env: "LLAMA_ARG_SKIP_CHAT_PARSING",
    help: "give the answer as it is, with reasoning and tool calls in its text" },
  { id: "prefillAssistant", names: ["--prefill-assistant"], off: ["--no-prefill-assistant"], ...on, default: "on", ...group("Chat"), commands: SERVE,
    llama: ["--prefill-assistant", "--no-prefill-assistant"], env: "LLAMA_ARG_PREFILL_ASSISTANT",
    help: "continue the last message if it is the assistant's" },

  // Speculative decoding
  { id: "modelDraft", names: ["-md", "--model-draft", "--spec-draft-model"], ...text("FILE"), ...DRAFT, env: "LLAMA_ARG_SPEC_DRAFT_MODEL",
    help: "a smaller model that drafts tokens" },
  { id: "specType", names: ["--spec-type"], ...choice(["none", "draft-simple", "draft-mtp", "ngram-simple"], "TYPE"),
    words: { draft: "draft-simple", mtp: "draft-mtp", ngram: "ngram-simple" }, ...DRAFT, env: "LLAMA_ARG_SPEC_TYPE",
    help: "how tokens are drafted: none, draft-simple, draft-mtp, ngram-simple (default: draft-simple with -md, else none)" },
  { id: "specDraftNMax", names: ["--spec-draft-n-max"], ...whole(1), ...DRAFT, env: "LLAMA_ARG_SPEC_DRAFT_N_MAX",
    help: "most tokens to draft in one step" },

  { id: "specDraftNMin", names: ["--spec-draft-n-min"], ...whole(0), default: 0, ...DRAFT, llama: "--spec-draft-n-min",
    env: "LLAMA_ARG_SPEC_DRAFT_N_MIN",
    help: "fewest tokens to draft; shorter drafts are dropped" },
  { id: "specDraftPMin", names: ["--spec-draft-p-min", "--draft-p-min"], ...real(0, 1), default: 0, ...DRAFT, llama: "--spec-draft-p-min",
    env: "LLAMA_ARG_SPEC_DRAFT_P_MIN",
    help: "how sure the draft must be of a token" },

  { id: "specNgramSizeN", names: ["--spec-ngram-simple-size-n"], ...whole(1, 1024), default: 12, ...DRAFT, llama: "--spec-ngram-simple-size-n",
    help: "ngram-simple: length of the n-gram that must have occurred before" },
  { id: "specNgramSizeM", names: ["--spec-ngram-simple-size-m"], ...whole(1, 1024), default: 48, ...DRAFT, llama: "--spec-ngram-simple-size-m",
    help: "ngram-simple: number of tokens that are then drafted" },
  { id: "specNgramMinHits", names: ["--spec-ngram-simple-min-hits"], ...whole(1, 1024), default: 1, ...DRAFT,
    llama: "--spec-ngram-simple-min-hits",
    help: "ngram-simple: how often it must have occurred" },

  // Server
  { id: "host", names: ["--host"], ...text("ADDRESS"), ...SERVER, ...listen, env: ["LLAMA_ARG_HOST", "HOST"],
    help: "address to listen on (default: 127.0.0.1, this machine only); 0.0.0.0: all" },
  { id: "port", names: ["--port"], ...whole(0, 65535), default: 8080, ...SERVER, ...listen, env: ["LLAMA_ARG_PORT", "PORT"],
    help: "port to listen on; 0: a free one" },
  { id: "apiKeys", names: ["--api-key"], ...text("KEY,..."), repeats: true, ...SERVER, ...server, ...own, env: "LLAMA_API_KEY",
    help: "keys, one of which requests must carry; other users of the machine can see the command line, but not the variable or the file" },
  { id: "apiKeyFile", names: ["--api-key-file"], ...text("FILE"), ...SERVER, env: "LLAMA_ARG_API_KEY_FILE",
    help: "file with one key per line" },
  { id: "cors", names: ["--cors-origin", "--cors-origins"], ...text("ORIGIN,..."), repeats: true, ...SERVER, ...server, ...own,
    env: "LLAMA_ARG_CORS_ORIGINS",
    help: 'origins whose web pages may use the server, e.g. https://example.com; localhost: those of this machine, "*": all ' +
      "(default: none but its own). May be given several times" },
  { id: "allowedHosts", names: ["--allowed-host"], ...text("NAME"), repeats: true, ...SERVER, ...listen, ...own,
    help: "another name that clients may use for the server, if it listens on this machine only and asks for no key" },
  { id: "page", names: ["--page", "--webui", "--ui"], off: ["--no-page", "--no-webui", "--no-ui"], ...on, default: "on", ...SERVER, ...server,
    env: "LLAMA_ARG_UI",
    help: "the web page at /" },
  { id: "slots", names: ["--slots"], off: ["--no-slots"], ...on, default: "on", ...SERVER, ...server, env: "LLAMA_ARG_ENDPOINT_SLOTS",
    help: "the route /slots, which shows what is running" },
  { id: "apiPrefix", names: ["--api-prefix"], ...text("/PATH"), ...SERVER, ...server, env: "LLAMA_ARG_API_PREFIX",
    help: "prefix of the paths of all routes, e.g. /llama" },
  { id: "slotPromptSimilarity", names: ["-sps", "--slot-prompt-similarity"], ...real(0, 1), default: 0.1, ...SERVER, llama: "--slot-prompt-similarity",
    help: "how much of a prompt a slot must hold to be chosen for it; 0: the slot idle for longest is chosen" },
  { id: "spmInfill", names: ["--spm-infill"], ...on, ...SERVER, llama: "--spm-infill",
    help: "/infill: the suffix before the prefix, as some models want it" },
  { id: "embdNormalize", names: ["--embd-normalize"], ...whole(-1, 1000), default: 2, ...SERVER, llama: "--embd-normalize",
    help: "norm of embeddings: -1 none, 0 the largest number, 1 taxicab, 2 Euclidean, more: that p-norm" },
  { id: "pooling", names: ["--pooling"], ...choice(["none", "mean", "cls", "last", "rank"], "TYPE"), ...SERVER, ...server, ...own,
    env: "LLAMA_ARG_POOLING",
    help: "how embeddings are pooled: none, mean, cls, last (default: the model's way, else mean); rank: the model must be a " +
      "reranker" },
  { id: "reranking", names: ["--reranking", "--rerank"], ...on, ...SERVER, env: "LLAMA_ARG_RERANKING",
    help: "the same as --pooling rank; a reranker ranks without it as well" },
  { id: "cacheRamMib", names: ["-cram", "--cache-ram"], ...whole(-1, INT_MAX, "MIB"), default: 0, ...SERVER, ...context,
    llama: "--cache-ram", env: "LLAMA_ARG_CACHE_RAM",
    help: "MiB in which each context keeps prompts of other conversations, -1: no limit; the slots' own prompts are reused anyway" },
  { id: "runpodQueue", names: ["--runpod-queue"], ...on, ...SERVER,
    help: "take jobs from the queue of a Runpod endpoint, which its environment names" },

  // Limits
  { id: "maxQueue", names: ["--max-queue"], ...whole(0, 2000), default: 64, ...LIMITS, ...server,
    help: "most requests that may wait for their turn; more get 503 and Retry-After" },
  { id: "requestTimeout", names: ["-to", "--timeout"], ...seconds, default: 3600, ...server, env: "LLAMA_ARG_TIMEOUT",
    help: "seconds that a request may take in all" },
  { id: "bodyTimeout", names: ["--body-timeout"], ...seconds, default: 30, ...server,
    help: "seconds that a request's body may take to arrive" },
  { id: "readTimeout", names: ["--read-timeout"], ...seconds, default: 60, ...server,
    help: "seconds that a streamed answer may be left unread" },
  { id: "stuckTimeout", names: ["--stuck-timeout"], ...seconds, default: 600, ...server,
    help: "how many seconds a context may be silent after a request was stopped before the engine counts as stuck and the model is " +
      "loaded again" },
  { id: "maxBodyBytes", names: ["--max-body"], ...real(0.001, 1024, "MIB"), unit: MIB, default: 16, ...LIMITS, ...server, ...own,
    help: "largest request body, in MiB" },
  { id: "drainTimeout", names: ["--drain-timeout"], ...seconds, default: 7, ...server,
    help: "seconds that running requests have to finish when the server is asked to stop" },

  // Measuring
  { id: "benchPrompt", names: ["-p", "--n-prompt"], ...text("N,..."), default: 128, ...MEASURING,
    help: "prompt lengths to measure; 0: none" },
  { id: "benchGen", names: ["-n", "--n-gen"], ...text("N,..."), default: 32, ...MEASURING,
    help: "numbers of tokens to generate; 0: none" },
  { id: "repetitions", names: ["-r", "--repetitions"], ...text("N"), default: 3, ...MEASURING,
    help: "repetitions of each measurement" },

  // General
  { id: "verbose", names: ["-v", "--verbose", "--log-verbose"], ...on, ...GENERAL, commands: ALL,
    help: "llama.cpp's whole log, and stacks of errors" },
  { id: "verbosity", names: ["-lv", "--log-verbosity", "--verbosity"], ...whole(0, 5), ...GENERAL, commands: ENGINE, ...load,
    env: "LLAMA_ARG_LOG_VERBOSITY",
    help: "llama.cpp's log: 1 errors, 2 warnings, 3 information, 4 trace, 5 all" },
  { id: "logFile", names: ["--log-file"], ...text("FILE"), ...GENERAL, commands: ENGINE, env: "LLAMA_ARG_LOG_FILE",
    help: "write llama.cpp's log to a file as well, from -lv 3 on" },
  { id: "help", names: ["-h", "--help", "--usage"], ...on, ...GENERAL, commands: ALL,
    help: "show this help" },
  { id: "version", names: ["--version"], ...on, ...GENERAL, commands: ALL,
    help: "show versions" },

  // Accepted for command lines written for llama.cpp: what they ask for happens anyway.
  { id: "ignored", ...on, ...GENERAL, commands: ENGINE, help: "", names: [
    "--warmup", "--no-warmup", "--mmap", "--no-mmap", "--no-display-prompt", "--perf", "--no-perf", "--show-timings", "--no-show-timings",
    "--simple-io", "--metrics", "--embedding", "--embeddings", "-cb", "--cont-batching", "-kvu", "--kv-unified", "--no-mmproj", "--no-mmproj-auto",
    "--no-cache-idle-slots", "--no-log-prefix", "--no-log-timestamps", "--no-log-jsonl",
  ] },
  // What they ask for does not exist or is decided differently here: they are reported, and nothing else happens.
  { id: "inert", ...on, inert: true, ...GENERAL, commands: ENGINE, help: "", names: [
    "--mlock", "-dio", "--direct-io", "-ndio", "--no-direct-io", "--no-host", "-cmoe", "--cpu-moe",
    "-cmoed", "--cpu-moe-draft", "--spec-draft-cpu-moe", "--op-offload", "--no-op-offload", "--check-tensors", "-nocb", "--no-cont-batching",
    "-no-kvu", "--no-kv-unified", "--cache-idle-slots", "--mmproj-auto", "--mmproj-offload", "--no-mmproj-offload", "--display-prompt",
    "--verbose-prompt", "--log-disable", "--log-prefix", "--log-timestamps", "--log-jsonl", "--reuse-port", "--props", "-bs",
    "--backend-sampling", "--cors-credentials", "--no-cors-credentials", "-mli", "--multiline-input", "--spec-draft-backend-sampling",
    "--no-spec-draft-backend-sampling", "-sp", "--special",
  ] },
  { id: "inertValue", ...text("VALUE"), inert: true, ...GENERAL, commands: ENGINE, help: "", names: [
    "-ts", "--tensor-split", "-mg", "--main-gpu", "-sm", "--split-mode", "--numa", "-dev", "--device", "-ot", "--override-tensor", "-ncmoe",
    "--n-cpu-moe", "-ncffn", "--n-cpu-ffn", "-fit", "--fit", "-fitt", "--fit-target", "-fitc", "--fit-ctx", "-lm", "--load-mode", "-lzm",
    "--lazy-mode", "--rpc", "-tb", "--threads-batch", "-C", "--cpu-mask", "-Cr", "--cpu-range", "--cpu-strict", "--prio", "--poll", "-Cb",
    "--cpu-mask-batch", "-Crb", "--cpu-range-batch", "--cpu-strict-batch", "--prio-batch", "--poll-batch", "--threads-http", "-dt",
    "--defrag-thold", "-co", "--color", "--log-colors", "-ngld", "--n-gpu-layers-draft", "--gpu-layers-draft", "--spec-draft-ngl", "-devd",
    "--device-draft", "--spec-draft-device", "-td", "--threads-draft", "--spec-draft-threads", "-tbd", "--threads-batch-draft",
    "--spec-draft-threads-batch", "-ctkd", "--cache-type-k-draft", "--spec-draft-type-k", "-ctvd", "--cache-type-v-draft",
    "--spec-draft-type-v", "-ncmoed", "--n-cpu-moe-draft", "-cms", "--checkpoint-min-step", "--kv-unified-per-slot", "--sse-ping-interval",
    "-Cd", "--cpu-mask-draft", "--spec-draft-cpu-mask", "-Crd", "--cpu-range-draft", "--spec-draft-cpu-range", "--cpu-strict-draft",
    "--spec-draft-cpu-strict", "--prio-draft", "--spec-draft-prio", "--poll-draft", "--spec-draft-poll", "-otd", "--override-tensor-draft",
    "--spec-draft-override-tensor", "--draft-p-split", "--spec-draft-p-split", "--ui-config", "--webui-config", "--ui-config-file",
    "--webui-config-file", "--log-prompts-dir", "--cors-methods", "--cors-headers", "--tags", "--sleep-idle-seconds", "--models-max",
  ] },
] as const satisfies readonly Option[];

/** A row of {@linkcode OPTIONS}. */
export type Row = typeof OPTIONS[number];

/** Name of an option in the program's own code. */
export type OptionId = Row["id"];

/** The rows of an options object of the library. */
type RowOf<S extends Scope, R = Row> = R extends { of: readonly (infer T)[] }
  ? S extends T ? R : never
  : never;

/** The names of an options object's options, as far as they are in the table. */
export type NameOf<S extends Scope> = RowOf<S>["id"];

type Plain<R> = R extends { own: true } ? never : R;

type ValueOf<R> = R extends { kind: "switch" } ? boolean
  : R extends { kind: "integer" | "number" } ? number
  : R extends { choices: readonly (infer C)[] } ? C
  : string;

/** Options that mean the same on the command line and in the library. */
export type Values<S extends Scope> = {
  [R in Plain<RowOf<S>> as R["id"]]: ValueOf<R> | undefined;
};

/**
 * The rows of an options object.
 *
 * @param scope Whose options they are.
 */
export function optionsOf(scope: Scope): Option[] {
  return (OPTIONS as readonly Option[]).filter((row) => row.of?.includes(scope));
}

/**
 * A row by its name in the program's own code.
 *
 * @param id The name.
 */
export function optionById(id: OptionId): Option {
  return (OPTIONS as readonly Option[]).find((row) => row.id === id)!;
}
