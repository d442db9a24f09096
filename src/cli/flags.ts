/** What the program can be asked to do. */
export const COMMANDS = [
  "run",
  "chat",
  "serve",
  "plan",
  "logits",
  "bench",
  "doctor",
  "help",
] as const;

/** One of {@linkcode COMMANDS}. */
export type CommandName = typeof COMMANDS[number];

/** One flag of the command line. */
export interface Flag {
  /** The name the program's own code uses. */
  readonly id: string;
  /** The names a user writes, dashes included; the first is the one that messages show. */
  readonly names: readonly string[];
  /** What the value is; a switch has none. */
  readonly kind: "switch" | "text" | "integer" | "number";
  /** Stands for the value in the help. */
  readonly value?: string;
  /** Least value of a number. */
  readonly min?: number;
  /** Greatest value of a number. */
  readonly max?: number;
  /** The only values there are. */
  readonly choices?: readonly string[];
  /** Value where the flag stands alone; such a flag takes the next argument only if it is one of `choices`. */
  readonly bare?: string;
  /** May be given several times, all of which count. */
  readonly repeats?: boolean;
  /** The environment variable that gives a default. */
  readonly env?: string;
  /** The commands that know it. */
  readonly commands: readonly CommandName[];
  /** Heading in the help. */
  readonly group: Group;
  /** One sentence for the help; "" for a flag that is accepted and does nothing. */
  readonly help: string;
}

/** Headings of the help, in their order. */
export const GROUPS = [
  "Model",
  "Plan",
  "Input",
  "Output",
  "Context",
  "Sampling",
  "Chat",
  "Speculative decoding",
  "Server",
  "Limits",
  "Measuring",
  "General",
] as const;

/** One of {@linkcode GROUPS}. */
export type Group = typeof GROUPS[number];

const ALL = COMMANDS;
const ENGINE = ["run", "chat", "serve", "logits", "bench"] as const;
const TALK = ["run", "chat"] as const;
const SERVED = ["run", "chat", "serve"] as const;
const KV = ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"] as const;

/** All flags. A name means one thing in one command, and takes or does not take a value in all of them alike. */
export const FLAGS = [
  // Model
  {
    id: "model",
    names: ["-m", "--model"],
    kind: "text",
    value: "FILE",
    commands: ["run", "chat", "logits", "bench"],
    group: "Model",
    help: "GGUF file, or any shard of a split one (default: the demo model)",
  },
  {
    id: "headerOf",
    names: ["-m", "--model"],
    kind: "text",
    value: "FILE",
    commands: ["plan"],
    group: "Model",
    help:
      "GGUF file, or any shard of a split one; only the header is read (default: the demo model)",
  },
  {
    id: "lora",
    names: ["--lora"],
    kind: "text",
    value: "FILE,...",
    commands: ENGINE,
    group: "Model",
    help: "LoRA adapters; they reach every pass of a repeated layer",
  },
  {
    id: "loraScaled",
    names: ["--lora-scaled"],
    kind: "text",
    value: "FILE:SCALE,...",
    commands: ENGINE,
    group: "Model",
    help: "LoRA adapters with a scale each",
  },
  {
    id: "gpuLayers",
    names: ["-ngl", "--n-gpu-layers", "--gpu-layers"],
    kind: "text",
    value: "N|all|auto",
    commands: ENGINE,
    group: "Model",
    help:
      "layers whose weights go to the GPU, from the last one on, the output layer counting as " +
      "one; 0: none, and no GPU is looked for (default: all, which auto means as well)",
  },
  {
    id: "gpu",
    names: ["--gpu"],
    kind: "text",
    value: "auto|off|required",
    choices: ["auto", "on", "off", "required"],
    bare: "required",
    commands: ENGINE,
    group: "Model",
    help: "auto: compute on the GPU if there is one that is no software; off: on the CPU; " +
      "required, on, or --gpu alone: on any GPU, or fail (default: auto)",
  },
  {
    id: "gpuPower",
    names: ["--gpu-power"],
    kind: "text",
    value: "low-power|high-performance",
    choices: ["low-power", "high-performance"],
    commands: ENGINE,
    group: "Model",
    help: "which GPU, where there are several (default: the system's choice)",
  },
  {
    id: "served",
    names: ["-m", "--model"],
    kind: "text",
    value: "FILE",
    env: "LLAMA_ARG_MODEL",
    commands: ["serve"],
    group: "Model",
    help: "GGUF file, or any shard of a split one (default: the demo model)",
  },
  // Plan
  {
    id: "alias",
    names: ["-a", "--alias"],
    kind: "text",
    value: "NAME=SPEC",
    repeats: true,
    commands: ["serve"],
    group: "Plan",
    help: "a name of a model for requests, and the plan that it runs; without =SPEC the default " +
      "plan. May be given several times",
  },
  {
    id: "strictModels",
    names: ["--strict-models"],
    kind: "switch",
    commands: ["serve"],
    group: "Plan",
    help: "refuse names of models that are not known (default: they run the default plan)",
  },
  {
    id: "maxContexts",
    names: ["--max-contexts"],
    kind: "integer",
    value: "N",
    min: 1,
    max: 64,
    env: "RYS_MAX_CONTEXTS",
    commands: ["serve"],
    group: "Plan",
    help: "contexts at once, one for each plan in use (default: 4); one that is idle makes room",
  },
  {
    id: "memoryBudget",
    names: ["--memory-budget"],
    kind: "integer",
    value: "MIB",
    min: 1,
    commands: ["serve"],
    group: "Plan",
    help: "MiB that contexts may take in all (default: what WASM memory has beside the weights; " +
      "with all layers on a GPU, what it has room for)",
  },
  {
    id: "repeatLayers",
    names: ["--repeat-layers"],
    kind: "text",
    value: "SPEC",
    env: "LLAMA_ARG_REPEAT_LAYERS",
    commands: ["run", "chat", "serve", "plan", "logits"],
    group: "Plan",
    help:
      'layers to run again: "26,34" (26..33 once more), "26,34x2" (twice more), "43,45;28,34", ' +
      '"layers:0..33,33,34..63", "none", or @FILE with a recipe (YAML or JSON)',
  },
  {
    id: "repeatLayersList",
    names: ["--repeat-layers"],
    kind: "text",
    value: "SPEC",
    repeats: true,
    env: "LLAMA_ARG_REPEAT_LAYERS",
    commands: ["bench"],
    group: "Plan",
    help: "a plan (or @FILE) to measure beside none; give it again for more plans",
  },
  {
    id: "nLayer",
    names: ["--n-layer"],
    kind: "integer",
    value: "N",
    min: 1,
    max: 512,
    commands: ["plan"],
    group: "Plan",
    help: "layers of the model, in place of -m",
  },
  {
    id: "nextn",
    names: ["--nextn"],
    kind: "integer",
    value: "N",
    min: 0,
    max: 511,
    commands: ["plan"],
    group: "Plan",
    help: "next-token (MTP) layers that come after those (default: 0)",
  },
  {
    id: "from",
    names: ["--from"],
    kind: "text",
    value: "FILE",
    commands: ["plan"],
    group: "Plan",
    help:
      "read the plan from a file: the grammar, mergekit YAML, or YAML or JSON with rys_relayer, " +
      'layers or blocks; "-" is standard input',
  },
  {
    id: "to",
    names: ["--to"],
    kind: "text",
    value: "mergekit|rys_relayer|layers|spec",
    choices: ["mergekit", "rys_relayer", "layers", "spec"],
    commands: ["plan"],
    group: "Plan",
    help: "write the plan in another form",
  },
  {
    id: "source",
    names: ["--source"],
    kind: "text",
    value: "NAME",
    commands: ["plan"],
    group: "Plan",
    help: "the model's name or repository, for --to mergekit and --to rys_relayer",
  },
  // Input
  {
    id: "prompt",
    names: ["-p", "--prompt"],
    kind: "text",
    value: "TEXT",
    commands: ["run", "chat", "logits"],
    group: "Input",
    help: "the prompt; in chat the first message",
  },
  {
    id: "file",
    names: ["-f", "--file"],
    kind: "text",
    value: "FILE",
    commands: ["run", "chat", "logits"],
    group: "Input",
    help: 'read the prompt from a file; "-" is standard input',
  },
  {
    id: "tokens",
    names: ["--tokens"],
    kind: "text",
    value: "1,2,3",
    commands: ["logits"],
    group: "Input",
    help: "token numbers in place of a prompt, for models without a tokenizer",
  },
  {
    id: "escape",
    names: ["-e", "--escape"],
    kind: "switch",
    commands: ["run", "chat", "logits"],
    group: "Input",
    help: "read \\n, \\t, \\x41 and the like in texts of the command line (default)",
  },
  {
    id: "noEscape",
    names: ["--no-escape"],
    kind: "switch",
    commands: ["run", "chat", "logits"],
    group: "Input",
    help: "leave backslashes as they are",
  },
  // Output
  {
    id: "predict",
    names: ["-n", "--predict", "--n-predict"],
    kind: "integer",
    value: "N",
    min: -2,
    commands: SERVED,
    group: "Output",
    help:
      "tokens to generate at most; -1, and -2 alike: until the model ends or the context is full (default)",
  },
  {
    id: "reversePrompt",
    names: ["-r", "--reverse-prompt"],
    kind: "text",
    value: "TEXT",
    repeats: true,
    commands: TALK,
    group: "Output",
    help: "stop where this text comes; may be given several times",
  },
  {
    id: "ignoreEos",
    names: ["--ignore-eos"],
    kind: "switch",
    commands: TALK,
    group: "Output",
    help: "go on where the model would end",
  },
  {
    id: "output",
    names: ["-o", "--output"],
    kind: "text",
    value: "FILE",
    commands: ["logits"],
    group: "Output",
    help: "write the logits: little-endian float32, one row of n_vocab for each token",
  },
  {
    id: "top",
    names: ["--top"],
    kind: "integer",
    value: "N",
    min: 0,
    max: 1000,
    commands: ["logits"],
    group: "Output",
    help: "show the N likeliest tokens of the last row (default: 10)",
  },
  {
    id: "json",
    names: ["--json"],
    kind: "switch",
    commands: ["run", "plan", "logits", "bench", "doctor"],
    group: "Output",
    help: "print one JSON object",
  },
  {
    id: "quiet",
    names: ["--quiet"],
    kind: "switch",
    commands: ENGINE,
    group: "Output",
    help: "no boot log, no notes and no speeds on standard error; warnings and errors stay",
  },
  // Context
  {
    id: "ctxSize",
    names: ["-c", "--ctx-size"],
    kind: "integer",
    value: "N",
    min: 0,
    commands: [...ENGINE, "plan"],
    group: "Context",
    help:
      "context size in tokens, rounded up to a multiple of 256; 0: the model's (default: the model's, at most 4096)",
  },
  {
    id: "batchSize",
    names: ["-b", "--batch-size"],
    kind: "integer",
    value: "N",
    min: 1,
    commands: ENGINE,
    group: "Context",
    help: "tokens handed to the model at once (default: 512)",
  },
  {
    id: "ubatchSize",
    names: ["-ub", "--ubatch-size"],
    kind: "integer",
    value: "N",
    min: 1,
    commands: ENGINE,
    group: "Context",
    help: "tokens computed at once (default: 512)",
  },
  {
    id: "parallel",
    names: ["-np", "--parallel"],
    kind: "integer",
    value: "N",
    min: 1,
    max: 256,
    commands: SERVED,
    group: "Context",
    help: "slots of the context (default: 1; serve: 4)",
  },
  {
    id: "threads",
    names: ["-t", "--threads"],
    kind: "integer",
    value: "N",
    min: -1,
    max: 512,
    commands: ENGINE,
    group: "Context",
    help: "threads that compute (default: the cores, at most 8)",
  },
  {
    id: "cacheTypeK",
    names: ["-ctk", "--cache-type-k"],
    kind: "text",
    value: "TYPE",
    choices: KV,
    commands: [...ENGINE, "plan"],
    group: "Context",
    help: `element type of the K cache: ${KV.join(", ")} (default: f16)`,
  },
  {
    id: "cacheTypeV",
    names: ["-ctv", "--cache-type-v"],
    kind: "text",
    value: "TYPE",
    choices: KV,
    commands: [...ENGINE, "plan"],
    group: "Context",
    help: "element type of the V cache (default: f16)",
  },
  {
    id: "flashAttn",
    names: ["-fa", "--flash-attn"],
    kind: "text",
    value: "on|off|auto",
    choices: ["on", "off", "auto", "1", "0", "true", "false", "enabled", "disabled"],
    bare: "on",
    commands: ENGINE,
    group: "Context",
    help: "flash attention (default: auto)",
  },
  {
    id: "swaFull",
    names: ["--swa-full"],
    kind: "switch",
    commands: [...ENGINE, "plan"],
    group: "Context",
    help: "full-size cache for sliding-window layers",
  },
  {
    id: "contextShift",
    names: ["--context-shift"],
    kind: "switch",
    commands: SERVED,
    group: "Context",
    help: "drop the oldest tokens where the context is full, instead of ending",
  },
  // Sampling
  {
    id: "seed",
    names: ["-s", "--seed"],
    kind: "integer",
    value: "N",
    min: -1,
    max: 0xffff_ffff,
    commands: TALK,
    group: "Sampling",
    help: "seed; -1: a random one (default), which --json tells",
  },
  {
    id: "temp",
    names: ["--temp", "--temperature"],
    kind: "number",
    value: "X",
    min: 0,
    max: 1e6,
    commands: SERVED,
    group: "Sampling",
    help: "temperature; 0 takes the likeliest token (default: 0.8)",
  },
  {
    id: "topK",
    names: ["--top-k"],
    kind: "integer",
    value: "N",
    min: -1,
    commands: SERVED,
    group: "Sampling",
    help: "keep the N likeliest tokens; 0 or -1 keeps all (default: 40)",
  },
  {
    id: "topP",
    names: ["--top-p"],
    kind: "number",
    value: "X",
    min: 0,
    max: 1,
    commands: SERVED,
    group: "Sampling",
    help: "keep the likeliest tokens up to this probability (default: 0.95)",
  },
  {
    id: "minP",
    names: ["--min-p"],
    kind: "number",
    value: "X",
    min: 0,
    max: 1,
    commands: SERVED,
    group: "Sampling",
    help: "keep tokens at least this likely beside the likeliest (default: 0.05)",
  },
  {
    id: "repeatPenalty",
    names: ["--repeat-penalty"],
    kind: "number",
    value: "X",
    min: 0,
    max: 1e6,
    commands: SERVED,
    group: "Sampling",
    help: "penalty on repeated tokens (default: 1, none)",
  },
  {
    id: "repeatLastN",
    names: ["--repeat-last-n"],
    kind: "integer",
    value: "N",
    min: -1,
    commands: SERVED,
    group: "Sampling",
    help: "tokens that penalties look back; -1: all (default: 64)",
  },
  {
    id: "presencePenalty",
    names: ["--presence-penalty"],
    kind: "number",
    value: "X",
    min: -1e6,
    max: 1e6,
    commands: SERVED,
    group: "Sampling",
    help: "penalty on tokens that have come (default: 0)",
  },
  {
    id: "frequencyPenalty",
    names: ["--frequency-penalty"],
    kind: "number",
    value: "X",
    min: -1e6,
    max: 1e6,
    commands: SERVED,
    group: "Sampling",
    help: "penalty for each time a token has come (default: 0)",
  },
  {
    id: "grammar",
    names: ["--grammar"],
    kind: "text",
    value: "GBNF",
    commands: TALK,
    group: "Sampling",
    help: "a grammar that the answer follows",
  },
  {
    id: "grammarFile",
    names: ["--grammar-file"],
    kind: "text",
    value: "FILE",
    commands: TALK,
    group: "Sampling",
    help: "the same from a file",
  },
  {
    id: "jsonSchema",
    names: ["-j", "--json-schema"],
    kind: "text",
    value: "SCHEMA",
    commands: TALK,
    group: "Sampling",
    help: "a JSON schema that the answer follows",
  },
  {
    id: "jsonSchemaFile",
    names: ["-jf", "--json-schema-file"],
    kind: "text",
    value: "FILE",
    commands: TALK,
    group: "Sampling",
    help: "the same from a file",
  },
  // Chat
  {
    id: "chat",
    names: ["--chat"],
    kind: "switch",
    commands: ["run"],
    group: "Chat",
    help: "send the prompt as a chat message, by the model's chat template (default: as it is)",
  },
  {
    id: "systemPrompt",
    names: ["-sys", "--system-prompt"],
    kind: "text",
    value: "TEXT",
    commands: TALK,
    group: "Chat",
    help: "system message; in run it implies --chat",
  },
  {
    id: "singleTurn",
    names: ["-st", "--single-turn"],
    kind: "switch",
    commands: TALK,
    group: "Chat",
    help: "one question, one answer, end",
  },
  {
    id: "chatTemplate",
    names: ["--chat-template"],
    kind: "text",
    value: "JINJA|NAME",
    commands: SERVED,
    group: "Chat",
    help: "chat template in place of the model's, or the name of a built-in one",
  },
  {
    id: "chatTemplateFile",
    names: ["--chat-template-file"],
    kind: "text",
    value: "FILE",
    commands: SERVED,
    group: "Chat",
    help: "the same from a file",
  },
  // Speculative decoding
  {
    id: "modelDraft",
    names: ["-md", "--model-draft", "--spec-draft-model"],
    kind: "text",
    value: "FILE",
    commands: SERVED,
    group: "Speculative decoding",
    help: "a smaller model that drafts tokens",
  },
  {
    id: "specType",
    names: ["--spec-type"],
    kind: "text",
    value: "TYPE",
    choices: ["none", "draft-simple", "draft-mtp", "ngram-simple", "draft", "mtp", "ngram"],
    commands: SERVED,
    group: "Speculative decoding",
    help: "how tokens are drafted: none, draft-simple, draft-mtp, ngram-simple " +
      "(default: draft-simple with -md, else none)",
  },
  {
    id: "specDraftNMax",
    names: ["--spec-draft-n-max"],
    kind: "integer",
    value: "N",
    min: 1,
    commands: SERVED,
    group: "Speculative decoding",
    help: "tokens drafted at most in one step",
  },
  // Server
  {
    id: "host",
    names: ["--host"],
    kind: "text",
    value: "ADDRESS",
    env: "HOST",
    commands: ["serve"],
    group: "Server",
    help: "address to listen on (default: 127.0.0.1, this machine alone); 0.0.0.0: all",
  },
  {
    id: "port",
    names: ["--port"],
    kind: "integer",
    value: "N",
    min: 0,
    max: 65535,
    env: "PORT",
    commands: ["serve"],
    group: "Server",
    help: "port to listen on (default: 8080); 0: a free one",
  },
  {
    id: "apiKey",
    names: ["--api-key"],
    kind: "text",
    value: "KEY,...",
    repeats: true,
    env: "LLAMA_API_KEY",
    commands: ["serve"],
    group: "Server",
    help: "keys, one of which requests must carry; other users of the machine see a command " +
      "line, but not the variable or the file",
  },
  {
    id: "apiKeyFile",
    names: ["--api-key-file"],
    kind: "text",
    value: "FILE",
    commands: ["serve"],
    group: "Server",
    help: "file with a key in each line",
  },
  {
    id: "corsOrigin",
    names: ["--cors-origin"],
    kind: "text",
    value: "ORIGIN",
    repeats: true,
    commands: ["serve"],
    group: "Server",
    help: 'origin whose web pages may use the server, e.g. https://example.com; "*": all ' +
      "(default: none but its own). May be given several times",
  },
  {
    id: "allowedHost",
    names: ["--allowed-host"],
    kind: "text",
    value: "NAME",
    repeats: true,
    commands: ["serve"],
    group: "Server",
    help: "further name that clients may call the server by, where it listens on this machine " +
      "alone and asks for no key",
  },
  {
    id: "noPage",
    names: ["--no-page", "--no-webui", "--no-ui"],
    kind: "switch",
    commands: ["serve"],
    group: "Server",
    help: "no web page at /",
  },
  {
    id: "pooling",
    names: ["--pooling"],
    kind: "text",
    value: "TYPE",
    choices: ["none", "mean", "cls", "last", "rank"],
    commands: ["serve"],
    group: "Server",
    help:
      "how embeddings are pooled: none, mean, cls, last (default: the model's way, else mean); " +
      "rank: the model must be one that ranks",
  },
  {
    id: "reranking",
    names: ["--reranking", "--rerank"],
    kind: "switch",
    commands: ["serve"],
    group: "Server",
    help: "the same as --pooling rank; a model that ranks does so without it as well",
  },
  {
    id: "cacheRam",
    names: ["-cram", "--cache-ram"],
    kind: "integer",
    value: "MIB",
    min: 0,
    commands: ["serve"],
    group: "Server",
    help: "MiB in which each context keeps prompts of other conversations (default: 0; the " +
      "slots' own prompts are reused anyway)",
  },
  {
    id: "runpodQueue",
    names: ["--runpod-queue"],
    kind: "switch",
    commands: ["serve"],
    group: "Server",
    help: "take jobs from the queue of a Runpod endpoint, which its environment names",
  },
  // Limits
  {
    id: "maxQueue",
    names: ["--max-queue"],
    kind: "integer",
    value: "N",
    min: 0,
    max: 2000,
    commands: ["serve"],
    group: "Limits",
    help: "requests that may wait for their turn (default: 64); more get 503 and Retry-After",
  },
  {
    id: "timeout",
    names: ["-to", "--timeout"],
    kind: "number",
    value: "S",
    min: 0.001,
    max: 2_000_000,
    commands: ["serve"],
    group: "Limits",
    help: "seconds that a request may take in all (default: 3600)",
  },
  {
    id: "bodyTimeout",
    names: ["--body-timeout"],
    kind: "number",
    value: "S",
    min: 0.001,
    max: 2_000_000,
    commands: ["serve"],
    group: "Limits",
    help: "seconds that a request's body may take to arrive (default: 30)",
  },
  {
    id: "readTimeout",
    names: ["--read-timeout"],
    kind: "number",
    value: "S",
    min: 0.001,
    max: 2_000_000,
    commands: ["serve"],
    group: "Limits",
    help: "seconds that a streamed answer may be left unread (default: 60)",
  },
  {
    id: "stuckTimeout",
    names: ["--stuck-timeout"],
    kind: "number",
    value: "S",
    min: 0.001,
    max: 2_000_000,
    commands: ["serve"],
    group: "Limits",
    help:
      "how long a context may not answer after a request was stopped, until the engine is taken for stuck and the model is loaded again (default: 600)",
  },
  {
    id: "maxBody",
    names: ["--max-body"],
    kind: "number",
    value: "MIB",
    min: 0.001,
    max: 1024,
    commands: ["serve"],
    group: "Limits",
    help: "MiB of a request's body (default: 16)",
  },
  {
    id: "drainTimeout",
    names: ["--drain-timeout"],
    kind: "number",
    value: "S",
    min: 0.001,
    max: 2_000_000,
    commands: ["serve"],
    group: "Limits",
    help: "seconds that requests have to end when the server is told to stop (default: 7)",
  },
  // Measuring
  {
    id: "benchPrompt",
    names: ["-p", "--n-prompt"],
    kind: "text",
    value: "N,...",
    commands: ["bench"],
    group: "Measuring",
    help: "prompt lengths to measure; 0: none (default: 128)",
  },
  {
    id: "benchGen",
    names: ["-n", "--n-gen"],
    kind: "text",
    value: "N,...",
    commands: ["bench"],
    group: "Measuring",
    help: "numbers of tokens to generate; 0: none (default: 32)",
  },
  {
    id: "repetitions",
    names: ["-r", "--repetitions"],
    kind: "text",
    value: "N",
    commands: ["bench"],
    group: "Measuring",
    help: "repetitions of each measurement (default: 3)",
  },
  // General
  {
    id: "verbose",
    names: ["-v", "--verbose"],
    kind: "switch",
    commands: ALL,
    group: "General",
    help: "llama.cpp's whole log, and stacks of errors",
  },
  {
    id: "verbosity",
    names: ["-lv", "--log-verbosity", "--verbosity"],
    kind: "integer",
    value: "N",
    min: 0,
    max: 5,
    commands: ENGINE,
    group: "General",
    help: "llama.cpp's log: 1 errors, 2 warnings, 3 information, 4 trace, 5 all",
  },
  {
    id: "help",
    names: ["-h", "--help", "--usage"],
    kind: "switch",
    commands: ALL,
    group: "General",
    help: "show this help",
  },
  {
    id: "version",
    names: ["--version"],
    kind: "switch",
    commands: ALL,
    group: "General",
    help: "show versions",
  },
  // Accepted for command lines written for llama.cpp: what they ask for is what happens anyway.
  {
    id: "ignored",
    names: [
      "--jinja",
      "--warmup",
      "--no-warmup",
      "--mmap",
      "--no-mmap",
      "--no-display-prompt",
      "-no-cnv",
      "--no-conversation",
      "--no-context-shift",
      "--no-perf",
      "--simple-io",
      "--metrics",
      "--slots",
      "--embedding",
      "--embeddings",
      "--cont-batching",
      "--kv-unified",
      "--no-mmproj",
    ],
    kind: "switch",
    commands: ENGINE,
    group: "General",
    help: "",
  },
] as const satisfies readonly Flag[];

/** Name of a flag in the program's own code. */
export type FlagId = typeof FLAGS[number]["id"];

/**
 * The flag that a name means.
 *
 * @param name As written, dashes included.
 * @param command The command it was given to.
 */
export function findFlag(name: string, command: CommandName): Flag | undefined {
  return flagsOf(command).find((flag) => flag.names.includes(name));
}

/**
 * The flags of a command.
 *
 * @param command The command.
 */
export function flagsOf(command: CommandName): Flag[] {
  return (FLAGS as readonly Flag[]).filter((flag) => flag.commands.includes(command));
}

/**
 * The commands that know a flag.
 *
 * @param name As written, dashes included.
 */
export function commandsOf(name: string): CommandName[] {
  const found = (FLAGS as readonly Flag[]).filter((flag) => flag.names.includes(name));
  return COMMANDS.filter((command) => found.some((flag) => flag.commands.includes(command)));
}
