// Chromium without a window, driven over its DevTools protocol.

/** What an event or an answer of the protocol carries. */
// deno-lint-ignore no-explicit-any -- the protocol's objects are read field by field, only here and in tests
export type Params = Record<string, any>;

/** Finds Chromium: `CHROMIUM` in the environment, else one of its usual names on PATH. */
export function findChromium(): string | undefined {
  const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
  for (const name of [Deno.env.get("CHROMIUM") ?? "", ...names].filter(Boolean)) {
    try {
      const { success } = new Deno.Command(name, {
        args: ["--version"],
        stdin: "null",
        stdout: "null",
        stderr: "null",
      }).outputSync();
      if (success) return name;
    } catch {
      // not there
    }
  }
  return undefined;
}

/** A keyboard key. */
interface Key {
  key: string;
  code: string;
  windowsVirtualKeyCode: number;
  text?: string;
}

const KEYS: Record<string, [number, string?]> = {
  ArrowLeft: [37],
  ArrowUp: [38],
  ArrowRight: [39],
  ArrowDown: [40],
  PageUp: [33],
  PageDown: [34],
  End: [35],
  Home: [36],
  Delete: [46],
  Backspace: [8],
  Tab: [9],
  Escape: [27],
  Enter: [13, "\r"],
};

/** A node of the accessibility tree. */
export interface AccessibleNode {
  role: string;
  name: string;
  value: string;
}

/** A running browser with one page. */
export class Browser implements AsyncDisposable {
  /** What the page wrote to the console as warnings and errors, and what went wrong in it. */
  readonly complaints: string[] = [];
  readonly #child: Deno.ChildProcess;
  readonly #profile: string;
  readonly #socket: WebSocket;
  readonly #pending = new Map<number, PromiseWithResolvers<Params>>();
  readonly #waiting = new Map<string, PromiseWithResolvers<Params>>();
  #next = 1;
  #session = "";

  private constructor(child: Deno.ChildProcess, profile: string, socket: WebSocket) {
    this.#child = child;
    this.#profile = profile;
    this.#socket = socket;
    socket.onmessage = ({ data }) => this.#receive(JSON.parse(data));
    socket.onclose = () => {
      for (const { reject } of this.#pending.values()) reject(new Error("the browser is gone"));
    };
  }

  /**
   * Starts a browser.
   *
   * @param program As {@linkcode findChromium} gives it.
   */
  static async start(program: string): Promise<Browser> {
    const profile = await Deno.makeTempDir({ prefix: "rys-chromium-" });
    const child = new Deno.Command(program, {
      args: [
        "--headless=new",
        "--no-sandbox", // Chromium's own sandbox does not work as root, as in containers
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--no-proxy-server",
        "--hide-scrollbars",
        "--lang=en-US",
        `--user-data-dir=${profile}`,
        "--remote-debugging-port=0",
        "about:blank",
      ],
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    let text = "";
    const reader = child.stderr.pipeThrough(new TextDecoderStream()).getReader();
    let address: string | undefined;
    while (!address) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`Chromium did not start: ${text.slice(-1000)}`);
      text += value;
      address = /DevTools listening on (ws:\S+)/.exec(text)?.[1];
    }
    (async () => {
      while (!(await reader.read()).done);
    })();
    const socket = new WebSocket(address);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = () => reject(new Error("Chromium does not talk"));
    });
    const browser = new Browser(child, profile, socket);
    const { targetId } = await browser.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await browser.send("Target.attachToTarget", { targetId, flatten: true });
    browser.#session = sessionId;
    for (const domain of ["Page", "Runtime", "Log", "DOM", "Accessibility"]) {
      await browser.send(`${domain}.enable`);
    }
    return browser;
  }

  #receive({ id, result, error, method, params }: Params): void {
    if (id !== undefined) {
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      if (error) pending?.reject(new Error(error.message));
      else pending?.resolve(result);
      return;
    }
    if (method === "Runtime.exceptionThrown") {
      const { exceptionDetails: e } = params;
      this.complaints.push(e.exception?.description ?? e.text);
    }
    if (method === "Runtime.consoleAPICalled" && ["error", "warning"].includes(params.type)) {
      this.complaints.push(
        params.args.map((arg: Params) => arg.value ?? arg.description).join(" "),
      );
    }
    if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) {
      this.complaints.push(`${params.entry.text} ${params.entry.url ?? ""}`);
    }
    this.#waiting.get(method)?.resolve(params);
    this.#waiting.delete(method);
  }

  /** Sends a command of the protocol. */
  send(method: string, params: Params = {}): Promise<Params> {
    const id = this.#next++;
    const pending = Promise.withResolvers<Params>();
    this.#pending.set(id, pending);
    const session = this.#session ? { sessionId: this.#session } : {};
    this.#socket.send(JSON.stringify({ id, method, params, ...session }));
    return pending.promise;
  }

  /** Waits for the next event of a name. */
  #event(method: string): Promise<Params> {
    const waiting = Promise.withResolvers<Params>();
    this.#waiting.set(method, waiting);
    return waiting.promise;
  }

  /** Sets the window's size and what the page learns of the reader's wishes. */
  async look(
    { width, height, dark = false, phone = false }: {
      width: number;
      height: number;
      dark?: boolean;
      phone?: boolean;
    },
  ): Promise<void> {
    await this.send("Emulation.setDeviceMetricsOverride", {
      width,
      height,
      deviceScaleFactor: phone ? 2 : 1,
      mobile: phone,
    });
    await this.send("Emulation.setEmulatedMedia", {
      features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }],
    });
    await this.evaluate(
      "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
    );
  }

  /** Opens an address and waits until it is loaded. */
  async open(url: string | URL): Promise<void> {
    const loaded = this.#event("Page.loadEventFired");
    await this.send("Page.navigate", { url: String(url) });
    await loaded;
  }

  /**
   * Evaluates an expression in the page.
   *
   * @returns Its value, awaited, as JSON carries it.
   */
  async evaluate<T>(expression: string): Promise<T> {
    const { result, exceptionDetails: e } = await this.send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (e) throw new Error(`${expression}: ${e.exception?.description ?? e.text}`);
    return result.value;
  }

  /**
   * Waits until an expression is true.
   *
   * @param ms After so long it is an error, so that a test that cannot pass ends.
   */
  async until(expression: string, ms = 300_000): Promise<void> {
    const end = performance.now() + ms;
    while (!await this.evaluate<boolean>(`!!(${expression})`)) {
      if (performance.now() > end) {
        const text = await this.evaluate<string>("document.body.innerText");
        throw new Error(`never true: ${expression}; the page says:\n${text}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  }

  /** Where an element is: left, top, width and height in the window. */
  async box(selector: string): Promise<{ x: number; y: number; width: number; height: number }> {
    const box = await this.evaluate<{ x: number; y: number; width: number; height: number }>(
      `(() => {
        const e = document.querySelector(${JSON.stringify(selector)});
        e.scrollIntoView({ block: "nearest" });
        return e.getBoundingClientRect().toJSON();
      })()`,
    );
    return box;
  }

  /** Moves, presses or lets go of the mouse. */
  async mouse(type: "Moved" | "Pressed" | "Released", x: number, y: number, down = true) {
    const pressed = type === "Moved" ? down : true;
    await this.send("Input.dispatchMouseEvent", {
      type: `mouse${type}`,
      x,
      y,
      button: pressed ? "left" : "none",
      buttons: pressed && type !== "Released" ? 1 : 0,
      clickCount: type === "Moved" ? 0 : 1,
    });
  }

  /** Clicks on the middle of an element. */
  async click(selector: string): Promise<void> {
    const { x, y, width, height } = await this.box(selector);
    await this.mouse("Moved", x + width / 2, y + height / 2, false);
    await this.mouse("Pressed", x + width / 2, y + height / 2);
    await this.mouse("Released", x + width / 2, y + height / 2);
  }

  /** Presses a key. */
  async press(key: string, modifiers: { shift?: boolean } = {}): Promise<void> {
    const [code, text] = KEYS[key] ?? [key.toUpperCase().charCodeAt(0), key];
    const fields: Key = { key, code: key, windowsVirtualKeyCode: code, ...text ? { text } : {} };
    const params = { ...fields, modifiers: modifiers.shift ? 8 : 0 };
    await this.send("Input.dispatchKeyEvent", { type: text ? "keyDown" : "rawKeyDown", ...params });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...params });
  }

  /** Types text into an element, in place of what it holds. */
  async type(selector: string, text: string): Promise<void> {
    await this.evaluate(
      `(() => {
        const e = document.querySelector(${JSON.stringify(selector)});
        e.focus();
        e.select();
      })()`,
    );
    if (text === "") await this.press("Delete");
    else await this.send("Input.insertText", { text });
  }

  /** What assistive programs see. */
  async accessibleNodes(): Promise<AccessibleNode[]> {
    const { nodes } = await this.send("Accessibility.getFullAXTree");
    return nodes.filter((node: Params) => !node.ignored).map((node: Params) => ({
      role: node.role?.value ?? "",
      name: node.name?.value ?? "",
      value: String(node.value?.value ?? ""),
    }));
  }

  /** A picture of the window, as PNG. */
  async screenshot(): Promise<Uint8Array<ArrayBuffer>> {
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    return Uint8Array.fromBase64(data);
  }

  /** Ends the browser and removes its profile. */
  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#socket.addEventListener("close", resolve));
    this.#session = "";
    await this.send("Browser.close").catch(() => {});
    await closed;
    await this.#child.status;
    await Deno.remove(this.#profile, { recursive: true }).catch(() => {});
  }
}
