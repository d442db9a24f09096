import type { ChatMessage, Context, GenerateOptions, GenerationEnd } from "../../engine/mod.ts";
import { describeError, UsageError } from "../errors.ts";
import { flagFault, generateOptions, promptText, systemText } from "../flags/generate_flags.ts";
import { gpuLine } from "../flags/gpu_flags.ts";
import { lineSource, type TerminalLines } from "../terminal/line_editor.ts";
import type { Flags } from "../flags/parse_flags.ts";
import { planInput, planInputOrNone } from "../flags/plan_input.ts";
import { alignLines, planLines } from "../terminal/plan_text.ts";
import {
  bootLog,
  fittingPlan,
  type LoadedModel,
  openContext,
  openModel,
  planFor,
  type Session,
} from "../session.ts";
import { noText, speeds, stream } from "./run.ts";
import { type Shell, styles } from "../terminal/shell.ts";
import { suggest } from "../flags/suggest.ts";

const HELP =
  `/plan SPEC    go on with another layer plan, e.g. /plan 26,34 or /plan none; alone: show the plan
/system TEXT  set the system message; alone: take it away
/reset        start over
/stats        speeds and sizes
/exit         leave (also Ctrl-D)
//TEXT        send a message that starts with a slash, e.g. //etc/hosts
Ctrl-C stops an answer.
`;

/**
 * The command `chat`.
 *
 * @param flags The model, its plan, sampling, the system message and a first message.
 * @param shell Where to write.
 */
export async function chat(flags: Flags, shell: Shell): Promise<number> {
  const where = flags.name("repeatLayers");
  const spec = await planInputOrNone(where, flags.text("repeatLayers"));
  const options = await generateOptions(flags);
  const first = await promptText(flags);
  const lines = lineSource(shell, "> "); // before loading, so that what is typed meanwhile is kept
  await using loaded = await openModel(
    flags,
    shell,
    (file) => fittingPlan(flags, where, spec, file),
  );
  const session = await openContext(flags, loaded, loaded.checked);
  bootLog(loaded, session, shell);
  if (
    !loaded.model.info.hasChatTemplate && !flags.has("chatTemplate") &&
    !flags.has("chatTemplateFile")
  ) {
    shell.warn("the model has no chat template; ChatML is used");
  }
  const system = await systemText(flags);
  return await new Chat(flags, shell, loaded, session, options, system).talk(first, lines);
}

/** One conversation. */
class Chat {
  readonly #messages: ChatMessage[] = [];
  #last: GenerationEnd | undefined;

  constructor(
    private readonly flags: Flags,
    private readonly shell: Shell,
    private readonly loaded: LoadedModel,
    private session: Session,
    private readonly options: GenerateOptions,
    private system: string | undefined,
  ) {}

  /**
   * Reads messages and answers them until there are no more.
   *
   * @param first A message before those.
   * @param lines Where they come from.
   * @returns The exit code.
   */
  async talk(first: string | undefined, lines: TerminalLines): Promise<number> {
    const isSingle = this.flags.on("singleTurn");
    if (first !== undefined) {
      await this.#answer(first);
      if (isSingle) return 0;
    }
    if (lines.isTerminal && !this.shell.quiet) {
      this.shell.err("Type a message, /help for commands, Ctrl-D to leave.\n");
    }
    for (let isSecond = false;;) {
      const line = await lines.next();
      if (line.kind === "end") return 0;
      if (line.kind === "interrupt") {
        if (isSecond) return 0;
        isSecond = true;
        this.shell.err("Ctrl-C again or Ctrl-D to leave\n");
        continue;
      }
      isSecond = false;
      const text = line.text.trim();
      if (text === "") continue;
      try {
        if (text.startsWith("/") && !text.startsWith("//")) {
          if (await this.#command(text)) return 0;
          continue;
        }
        await this.#answer(text.startsWith("//") ? text.slice(1) : text);
      } catch (error) {
        this.#tell(error, lines.isTerminal);
      }
      if (isSingle) return 0;
    }
  }

  /** A mistake made in a terminal is reported and the conversation goes on; input from a file ends at it. */
  #tell(error: unknown, isTerminal: boolean): void {
    const isGone = this.shell.signal.aborted || this.session.context.disposed;
    const { code, message } = describeError(error);
    if (!isTerminal || isGone || message === "") throw error;
    this.shell.err(`${styles(this.shell.colour).red("error:")} ${message}\n`);
    if (code === 1 && this.#messages.length > 1) this.shell.err("/reset starts over\n");
  }

  /** Answers a message; Ctrl-C ends the answer, and the part of it already given stays. */
  async #answer(content: string): Promise<void> {
    const stop = new AbortController();
    this.shell.onInterrupt = () => {
      if (stop.signal.aborted) return false; // it does not stop: end the program
      stop.abort(new Error("stopped"));
      return true;
    };
    const user = { role: "user", content };
    let said = "";
    try {
      const generation = this.session.context.generate([...this.#history(), user], {
        ...this.options,
        signal: AbortSignal.any([this.shell.signal, stop.signal]),
      });
      let hasThought = false;
      const end = await stream(generation, this.shell, (piece) => {
        said += piece.text;
        hasThought ||= Boolean(piece.reasoning);
      });
      if (said === "") this.shell.note(noText(end, hasThought, this.options));
      this.#last = end;
      this.#messages.push(user, { role: "assistant", content: said });
    } catch (error) {
      if (!stop.signal.aborted || this.shell.signal.aborted) throw flagFault(this.flags, error);
      this.shell.err("(stopped)\n");
      if (said !== "") this.#messages.push(user, { role: "assistant", content: said });
    } finally {
      this.shell.onInterrupt = undefined;
    }
  }

  #history(): ChatMessage[] {
    return this.system === undefined
      ? this.#messages
      : [{ role: "system", content: this.system }, ...this.#messages];
  }

  /** Runs a line that begins with a slash; true to leave. */
  async #command(line: string): Promise<boolean> {
    const [, name = "", rest = ""] = /^(\/\S*)\s*(.*)$/s.exec(line) ?? [];
    const { shell } = this;
    switch (name) {
      case "/help":
        shell.err(HELP);
        return false;
      case "/exit":
      case "/quit":
      case "/bye":
        return true;
      case "/reset":
        this.#messages.length = 0;
        shell.err("the conversation starts over\n");
        return false;
      case "/system":
        this.system = rest === "" ? undefined : rest;
        shell.err(rest === "" ? "no system message\n" : "system message set\n");
        return false;
      case "/plan":
        if (rest !== "") await this.#changePlan(rest);
        this.#showPlan();
        return false;
      case "/stats":
        this.#showStats();
        return false;
      default: {
        const names = ["/help", "/reset", "/plan", "/system", "/stats", "/exit"];
        const near = suggest(name, names);
        throw new UsageError(
          `unknown command ${name}; ${
            near ? `did you mean ${near}?` : "/help shows the commands"
          } (/${name} sends it as a message)`,
        );
      }
    }
  }

  /** Makes a context with the new plan on the same weights; the old one is freed only once the new one exists. */
  async #changePlan(spec: string): Promise<void> {
    const plan = planFor("/plan", await planInput("/plan", spec), this.loaded.file);
    const next = await openContext(this.flags, this.loaded, plan);
    const old: Context = this.session.context;
    this.session = next;
    await old.dispose();
  }

  #showPlan(): void {
    const { context, cost } = this.session;
    const style = styles(this.shell.colour);
    this.shell.err(alignLines(planLines(context.info.plan, cost), style));
    for (const text of context.info.plan.advisories) this.shell.warn(text);
  }

  #showStats(): void {
    const { info } = this.session.context;
    const end = this.#last;
    const used = end === undefined ? 0 : end.nPrompt + end.nGenerated;
    const lines: [string, string][] = [
      ["messages", String(this.#history().length)],
      ["context", `${used} of ${info.nCtxSeq} tokens`],
      [
        "n_layer_eff",
        `${info.plan.nLayerEff} of ${info.plan.nLayer} layers (${info.plan.spec.trim()})`,
      ],
      ["GPU", gpuLine(this.loaded.model.info, this.loaded.gpu)],
    ];
    if (end !== undefined) lines.push(["last answer", speeds(end)]);
    this.shell.err(alignLines(lines, styles(this.shell.colour)));
  }
}
