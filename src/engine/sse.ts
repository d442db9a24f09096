/**
 * Splits a stream of server-sent events into the JSON of their data lines.
 *
 * @returns A function that takes the next bytes and returns the objects that became whole. `[DONE]` and comments are
 * left out.
 */
export function sseParser(): (bytes: Uint8Array) => unknown[] {
  const decoder = new TextDecoder();
  let rest = "";
  return (bytes) => {
    rest += decoder.decode(bytes, { stream: true });
    const events = rest.split("\n\n");
    rest = events.pop()!;
    const objects: unknown[] = [];
    for (const event of events) {
      const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) =>
        line.slice(5).trimStart()
      );
      const text = data.join("\n");
      if (text && text !== "[DONE]") objects.push(JSON.parse(text));
    }
    return objects;
  };
}
