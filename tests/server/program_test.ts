import { assert, assertEquals } from "@std/assert";
import { program, readUntil, start } from "../cli/_program.ts";
import { CHAT, ENDLESS, until } from "./_server.ts";

const ROOT = decodeURIComponent(new URL("../../", import.meta.url).pathname).replace(/\/$/, "");

/** A port that is free now. */
function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  return port;
}

interface Running {
  url: string;
  child: Deno.ChildProcess;
  /** Everything it writes to standard error. */
  err: Promise<string>;
  ask(path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  /** Sends a signal and waits for the end. */
  stop(signal?: Deno.Signal): Promise<{ code: number; err: string }>;
}

/** Runs `serve` as a program until `use` returns. */
async function running(
  args: string[],
  options: { env?: Record<string, string>; allow?: (port: number) => string[]; isReady?: boolean },
  use: (program: Running) => Promise<void>,
): Promise<void> {
  const port = freePort();
  const child = start(["serve", "-c", "512", ...args], {
    env: { PORT: String(port), ...options.env },
    ...options.allow ? { allow: options.allow(port) } : {},
  });
  const url = `http://127.0.0.1:${port}`;
  let text = "";
  const err = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stderr) text += decoder.decode(chunk, { stream: true });
    return text;
  })();
  const out = new Response(child.stdout).text();
  let ended = false;
  child.status.then(() => ended = true);
  const ask = (path: string, body?: unknown, headers: Record<string, string> = {}) =>
    fetch(url + path, {
      headers,
      ...body === undefined ? {} : { method: "POST", body: JSON.stringify(body) },
    });
  const stop = async (signal: Deno.Signal = "SIGTERM") => {
    child.kill(signal);
    const { code } = await child.status;
    return { code, err: await err };
  };
  try {
    await until("it listens", async () => {
      const health = await ask("/health").catch(() => undefined);
      await health?.body?.cancel();
      if (ended) throw new Error("it ended before it listened");
      return health !== undefined && (options.isReady === false || health.status === 200);
    });
    await use({ url, child, err, ask, stop });
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${text}`, { cause: error });
  } finally {
    try {
      child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
    await child.stdin.close().catch(() => {});
    await child.status;
    assertEquals(await out, "");
    await err;
  }
}

Deno.test("serve runs with the narrowest permissions", async () => {
  await running(["--port", "0", "--alias", "deep=26,34"], {
    allow: (port) => [
      "--no-prompt",
      `--allow-read=${ROOT}`,
      `--allow-net=127.0.0.1:${port}`,
      "--allow-env=PORT",
    ],
    // The flag wins over PORT, and port 0 is not allowed: so the flag is tried first, and refused.
    isReady: false,
  }, () => Promise.resolve()).then(
    () => assert(false, "it listened where it may not"),
    (error) => assert(error.message.includes("--allow-net=127.0.0.1:0"), error.message),
  );
  await running(["--alias", "deep=26,34"], {
    allow: (port) => [
      "--no-prompt",
      `--allow-read=${ROOT}`,
      `--allow-net=127.0.0.1:${port}`,
      "--allow-env=PORT",
    ],
  }, async ({ ask, stop }) => {
    const response = await ask("/v1/chat/completions", { ...CHAT, model: "deep" });
    assertEquals((await response.json()).rys.n_layer_eff, 48);
    const page = await ask("/");
    assertEquals([page.status, page.headers.get("content-type")], [
      200,
      "text/html; charset=utf-8",
    ]);
    await page.body?.cancel();
    await (await ask("/v1/embeddings", { input: "x" })).json();
    const { code, err } = await stop();
    assertEquals(code, 0, err);
    assert(/listening on .*http:\/\/127\.0\.0\.1:\d+/.test(err), err);
  });
});

Deno.test("SIGTERM lets a stream end, takes nothing new, and exits with 0", async () => {
  await running(["--drain-timeout", "100"], {}, async ({ ask, stop, child }) => {
    const response = await ask("/completion", { ...ENDLESS, n_predict: 40, stream: true });
    const ended = stop();
    const text = await response.text();
    assert(text.includes('"tokens_predicted":40'), text.slice(-300));
    assertEquals((await ended).code, 0);
    await child.status;
  });
});

Deno.test("a request that does not end is stopped when its time to drain is up", async () => {
  await running(["--drain-timeout", "0.3"], {}, async ({ ask, stop }) => {
    const response = await ask("/completion", { ...ENDLESS, n_predict: 450, stream: true });
    const ended = stop("SIGINT");
    const text = await response.text();
    assert(text.includes('"code":503') || text.includes('"stop":true'), text.slice(-300));
    assertEquals((await ended).code, 0);
  });
});

Deno.test("serve is stopped while it loads", async () => {
  await running([], { isReady: false }, async ({ stop }) => {
    assertEquals((await stop()).code, 0);
  });
});

Deno.test("keys come from flags, the environment and a file, and are asked for", async () => {
  const file = await Deno.makeTempFile();
  await Deno.writeTextFile(file, "file-key\n\nother-key\r\n");
  try {
    await running(["--api-key-file", file], { env: { LLAMA_API_KEY: "a,b" } }, async ({ ask }) => {
      for (const key of ["a", "b", "file-key", "other-key"]) {
        const response = await ask("/v1/models", undefined, { authorization: `Bearer ${key}` });
        assertEquals(response.status, 200, key);
        await response.body?.cancel();
      }
      const response = await ask("/v1/models", undefined, { authorization: "Bearer " });
      assertEquals(response.status, 401);
      await response.body?.cancel();
    });
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("sampling flags are the defaults of requests", async () => {
  await running(["--temp", "0", "-n", "3", "--top-k", "7"], {}, async ({ ask }) => {
    const { generation_settings: used, tokens_predicted: n } =
      await (await ask("/completion", { prompt: "Once" })).json();
    assertEquals([used.temperature, used.top_k, n], [0, 7, 3]);
  });
});

Deno.test("serve tells wrong usage before it listens", async () => {
  for (
    const [args, part] of [
      [["--port", "99999"], "--port must be a whole number in 0..65535"],
      [["--alias", "=26,34"], "name=spec"],
      [["--alias", "deep=26,99"], "out of range"],
      [["--alias", "deep=x"], "Cannot parse"],
      [["--repeat-layers", "26,99"], "out of range"],
      [["--max-contexts", "0"], "--max-contexts"],
      [["--cors-origin", "example.com"], "cors"],
      [["--api-key", ""], "has no key"],
      [["--runpod-queue"], "RUNPOD_WEBHOOK_GET_JOB"],
      [["stray"], "unexpected argument"],
    ] as [string[], string][]
  ) {
    const { code, err, out } = await program(["serve", ...args]);
    assertEquals([code, out], [2, ""], `${args.join(" ")}: ${err}`);
    assert(err.includes(part), err);
  }
  const { code, err } = await program(["serve", "-m", "no-such-file.gguf"]);
  assertEquals(code, 1);
  assert(err.includes("no-such-file.gguf"), err);
});

Deno.test("serve says which addresses it listens on", async () => {
  for (const [host, shown] of [["0.0.0.0", "http://0.0.0.0"], ["::", "http://[::]"]] as const) {
    if (host === "::" && !hasIpv6()) continue;
    await running([], { env: { HOST: host } }, async ({ url, stop }) => {
      const { code, err } = await stop();
      assertEquals(code, 0);
      const line = `listening on ${shown}:${new URL(url).port} (all interfaces)`;
      assert(err.split("\n").some((one) => one === line), err);
      assert(err.includes("--api-key"), err);
    });
  }
});

function hasIpv6(): boolean {
  try {
    Deno.listen({ hostname: "::", port: 0 }).close();
    return true;
  } catch {
    return false;
  }
}

Deno.test("serve refuses a model that does not rank where it must, and knows llama-server's flags", async () => {
  for (const flag of [["--pooling", "rank"], ["--reranking"]]) {
    const { code, err } = await program(["serve", ...flag]);
    assertEquals(code, 1);
    assert(err.includes("does not rank texts"), err);
  }
  await running(["--embeddings"], {}, async ({ ask }) => {
    const { data } = await (await ask("/v1/embeddings", { input: "x" })).json();
    assertEquals(data.length, 1);
  });
});

Deno.test("serve says that the port is taken", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  const { code, err } = await program(["serve", "--port", String(port)]);
  listener.close();
  assertEquals(code, 1);
  assert(err.includes(`Cannot listen on 127.0.0.1:${port}: the port is taken`), err);
});

Deno.test("deno serve runs the default export, with its options from the environment", async () => {
  const port = freePort();
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "serve",
      "-A",
      "--quiet",
      "--host",
      "127.0.0.1",
      "--port",
      String(port),
      `${ROOT}/src/server/mod.ts`,
    ],
    env: {
      LLAMA_ARG_MODEL: `${ROOT}/models/demo.gguf`,
      LLAMA_ARG_ALIAS: "deep=26,34",
      LLAMA_ARG_CTX_SIZE: "512",
      LLAMA_API_KEY: "k",
    },
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const reader = child.stderr.getReader();
  try {
    await readUntil(reader, "model ready");
    const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: "POST",
      headers: { "x-api-key": "k" },
      body: JSON.stringify({ ...CHAT, model: "deep" }),
    });
    assertEquals((await response.json()).rys.plan, "26,34");
    child.kill("SIGTERM");
    assertEquals((await child.status).code, 0);
    let rest = "";
    for (let part; !(part = await reader.read()).done;) {
      rest += new TextDecoder().decode(part.value);
    }
    assert(!rest.includes("request.signal"), rest); // Deno's notice
  } finally {
    await reader.cancel();
    try {
      child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
    await child.status;
  }
});
