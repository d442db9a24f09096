import type { HubProgress } from "../../hub/settings.ts";
import { formatBytes } from "./plan_text.ts";
import type { Shell } from "./shell.ts";

/** How often the line is drawn in a terminal, and a line is written elsewhere, in milliseconds. */
const DRAW_MS = 100;
const LINE_MS = 30_000;
/** The time over which the rate is taken, in milliseconds. */
const RATE_MS = 5000;

const DOING: Record<HubProgress["doing"], string> = {
  fetching: "fetching",
  checking: "checking",
  waiting: "another process is fetching",
};

/**
 * How far fetching is, in one line.
 *
 * @param progress How far it is.
 * @param rate Bytes a second; 0 if that is not known yet.
 */
export function fetchLine(progress: HubProgress, rate: number): string {
  const { doing, file, number, count, bytes, size } = progress;
  const which = count > 1 ? ` (${number} of ${count})` : "";
  const percent = size === 0 ? 100 : Math.floor(100 * bytes / size);
  const head = `${DOING[doing]} ${file}${which}: ${percent} % of ${formatBytes(size)}`;
  if (rate <= 0 || doing === "waiting") return head;
  return `${head}, ${formatBytes(rate)}/s, ${duration((size - bytes) / rate)} left`;
}

function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
}

/**
 * Shows on standard error how far fetching is: a line that changes in a terminal, a line now and then elsewhere.
 *
 * @param shell Where to write; if it is quiet, nothing is.
 */
export function fetchProgress(
  shell: Shell,
): { show(progress: HubProgress): void; clear(): void } {
  const isTerminal = Deno.stderr.isTerminal();
  let samples: [ms: number, bytes: number][] = [];
  let what = "";
  let due = performance.now() + (isTerminal ? DRAW_MS : LINE_MS);
  let drawn = false;
  return {
    show(progress) {
      const now = performance.now();
      const key = `${progress.doing} ${progress.number}`;
      if (key !== what || progress.bytes < (samples.at(-1)?.[1] ?? 0)) samples = [];
      what = key;
      if (now - (samples.at(-1)?.[0] ?? 0) >= DRAW_MS) samples.push([now, progress.bytes]);
      while (samples.length > 2 && now - samples[0]![0] > RATE_MS) samples.shift();
      if (shell.quiet || now < due) return;
      due = now + (isTerminal ? DRAW_MS : LINE_MS);
      const [ms, bytes] = samples[0]!;
      const rate = now - ms > 500 ? 1000 * (progress.bytes - bytes) / (now - ms) : 0;
      const line = fetchLine(progress, rate);
      shell.err(isTerminal ? `\r\x1b[K${line}` : `${line}\n`);
      drawn = true;
    },
    clear() {
      if (drawn && isTerminal) shell.err("\r\x1b[K");
      drawn = false;
    },
  };
}
