/** The program's commands. */
export const COMMANDS = [
  "run",
  "chat",
  "serve",
  "plan",
  "inspect",
  "export",
  "logits",
  "bench",
  "pull",
  "ls",
  "rm",
  "verify",
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
  /** The kind of value; a switch has none on the command line. */
  readonly kind: "switch" | "text" | "integer" | "number";
  /** Stands for the value in the help. */
  readonly value?: string;
  /** Least value of a number. */
  readonly min?: number;
  /** Least value in the library, if the command line has numbers with a special meaning, such as -1 for all. */
  readonly least?: number;
  /** Greatest value of a number. */
  readonly max?: number;
  /** The only values allowed. */
  readonly choices?: readonly string[];
  /** What a text must look like. */
  readonly form?: RegExp;
  /** The words that a text is made of, and their separator. */
  readonly parts?: readonly [separator: string, words: readonly string[]];
  /** Other words for values. */
  readonly words?: Readonly<Record<string, string>>;
  /** How many values it takes, if more than one; they are passed on separated by a space. */
  readonly takes?: number;
  /** Asks for something that does not exist here: reported in a note, and without effect. */
  readonly inert?: boolean;
  /** Value if the flag stands alone; such a flag takes the next argument only if that is one of its values. */
  readonly bare?: string;
  /** May be given several times; all of them count. */
  readonly repeats?: boolean;
  /** The environment variables that give a default, the first that is set. */
  readonly env?: string | readonly string[];
  /** Separates the values in the variable, if the flag may be given several times. */
  readonly envSeparator?: string;
  /** The commands that know it. */
  readonly commands: readonly CommandName[];
  /** Its heading in the help. */
  readonly group: Group;
  /** One sentence for the help; "" for a flag that is accepted and does nothing. */
  readonly help: string;
  /** The value if it is not given. */
  readonly default?: string | number;
  /** The library's options objects that have it. */
  readonly of?: readonly Scope[];
  /** In the library its value has another form, and is checked where it is used. */
  readonly own?: boolean;
  /** What 1 on the command line is in the library, such as the bytes in a MiB. */
  readonly unit?: number;
  /** llama-server's own flag that passes it to llama.cpp; for a switch, also the one that switches it off. */
  readonly llama?: string | readonly [on: string, off: string];
  /** It concerns the model, and is passed on when that is loaded. */
  readonly atLoad?: boolean;
  /** The field in llama-server's requests. */
  readonly field?: string;
}
