/** One sample: the functions that were running, innermost first. */
export interface Sample {
  /** Microseconds since the log's begin. */
  at: number;
  /** Names of WASM functions; those of V8, JavaScript and the system are left out. */
  stack: string[];
}

/**
 * Reads the log that V8 writes with `--prof`: addresses of compiled functions, and a sample each millisecond.
 *
 * @param log The log of one thread.
 * @returns Samples in WASM functions, in the order of time.
 */
export function readSamples(log: string): Sample[] {
  const code = new Map<number, { end: number; name: string }>();
  const ticks: { at: number; addresses: number[] }[] = [];
  for (const line of log.split("\n")) {
    const fields = line.split(",");
    if (fields[0] === "code-creation" && fields[1] === "JS" && fields[2] === "5") { // 5: of WASM
      const start = Number(fields[4]);
      const name = fields[6]!.replace(
        /\\x([0-9a-f]{2})/gi,
        (_, hex) => String.fromCharCode(parseInt(hex, 16)),
      );
      code.set(start, { end: start + Number(fields[5]), name });
    } else if (fields[0] === "tick") {
      ticks.push({
        at: Number(fields[2]),
        addresses: [fields[1]!, ...fields.slice(6)].map(Number),
      });
    }
  }
  const starts = Float64Array.from(code.keys()).sort();
  const nameAt = (address: number) => {
    let low = 0, high = starts.length; // of the last start that is not behind the address
    while (low < high) {
      const middle = (low + high) >> 1;
      if (starts[middle]! <= address) low = middle + 1;
      else high = middle;
    }
    const found = low > 0 ? code.get(starts[low - 1]!)! : undefined;
    return found && address < found.end ? found.name : undefined;
  };
  return ticks.map(({ at, addresses }) => ({
    at,
    stack: addresses.map(nameAt).filter((name) => name !== undefined),
  })).filter(({ stack }) => stack.length > 0);
}
