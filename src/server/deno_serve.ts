import { fromEnvironment } from "./from_environment.ts";
import { createServer, type FetchInfo, type RysServer } from "./server.ts";

let server: RysServer | undefined;

/** The server of this process, made when first needed. */
function theServer(): RysServer {
  if (server !== undefined) return server;
  const options = fromEnvironment();
  return server = createServer({
    ...options,
    onModel: ({ gpu, gpuWhy }) =>
      console.error(
        gpu ? `GPU: ${gpu.description}, ${gpu.layers} layers` : `GPU: not used: ${gpuWhy}`,
      ),
    onLog: (line) => console.error(line),
  });
}

/** What `deno serve` runs: a server whose options stand in the environment; see {@linkcode fromEnvironment}. */
export interface DenoServe {
  /** Answers a request. */
  fetch(request: Request, info?: FetchInfo): Promise<Response>;
  /** Begins to load the model. */
  onListen(address: unknown): void;
}

/** The server that `deno serve` runs. */
const handler: DenoServe = {
  // By the request's signal: `info.completed` does not tell of a client that leaves before there is an answer.
  fetch: (request, info) => theServer().fetch(request, info),
  onListen() {
    const made = theServer();
    made.ready.catch((error) => {
      console.error(`error: ${error.message}`);
      Deno.exit(1);
    });
    try {
      Deno.addSignalListener("SIGTERM", () => void made.close().then(() => Deno.exit(0)));
    } catch {
      // Not every system has every signal.
    }
  },
};

export default handler;
