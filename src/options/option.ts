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

/** Options objects of the library: of `loadModel()`, `createContext()`, `generate()`, `createServer()`, `serve()`. */
export type Scope = "load" | "context" | "generate" | "server" | "listen";

/** One option: of the library, of the command line, or of both. */
export interface Option {
  /** The name the program's own code uses; in the library, the option's name. */
  readonly id: string;
  /** The names a user writes, dashes included; the first is the one that messages show. */
  readonly names: readonly string[];
  /** Names that switch it off. */
  readonly off?: readonly string[];
  /** What the value is; a switch has none on the command line. */
  readonly kind: "switch" | "text" | "integer" | "number";
  /** Stands for the value in the help. */
  readonly value?: string;
  /** Least value of a number. */
  readonly min?: number;
  /** Least value in the library, where the command line has numbers that are words, such as -1 for all. */
  readonly least?: number;
  /** Greatest value of a number. */
  readonly max?: number;
  /** The only values there are. */
  readonly choices?: readonly string[];
  /** What a text must look like. */
  readonly form?: RegExp;
  /** The words that a text is made of, and what stands between them. */
  readonly parts?: readonly [separator: string, words: readonly string[]];
  /** Other words for values. */
  readonly words?: Readonly<Record<string, string>>;
  /** How many values it takes, where it is more than one; they are handed on with a space between. */
  readonly takes?: number;
  /** Asks for what there is not here; told in a note, and without effect. */
  readonly inert?: boolean;
  /** Value where the flag stands alone; such a flag takes the next argument only if it is a value that it can have. */
  readonly bare?: string;
  /** May be given several times, all of which count. */
  readonly repeats?: boolean;
  /** The environment variables that give a default, the first that is set. */
  readonly env?: string | readonly string[];
  /** Separates the values of the variable, where the flag may be given several times. */
  readonly envSeparator?: string;
  /** The commands that know it. */
  readonly commands: readonly CommandName[];
  /** Heading in the help. */
  readonly group: Group;
  /** One sentence for the help; "" for a flag that is accepted and does nothing. */
  readonly help: string;
  /** What holds where it is not given. */
  readonly default?: string | number;
  /** Options objects of the library that have it. */
  readonly of?: readonly Scope[];
  /** In the library its value is of another form, and is checked where it is used. */
  readonly own?: boolean;
  /** What one on the command line is in the library, such as the bytes of a MiB. */
  readonly unit?: number;
  /** llama-server's own flag that hands it to llama.cpp; of a switch, the one that switches it off as well. */
  readonly llama?: string | readonly [on: string, off: string];
  /** It concerns the model, and is handed over when that is loaded. */
  readonly atLoad?: boolean;
  /** Field of llama-server's requests. */
  readonly field?: string;
}
