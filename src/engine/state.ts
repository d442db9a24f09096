import { EngineError } from "./client.ts";

/** What a saved state and the context it is loaded into must agree on. */
export interface StateIdentity {
  /** The model, identified by its header. */
  model: string;
  /** The plan as text, for messages. */
  plan: string;
  /** The plan's hash. */
  planHash: string;
  /** Type of the K cache. */
  cacheTypeK: string;
  /** Type of the V cache. */
  cacheTypeV: string;
}

interface Head extends StateIdentity {
  /** Bytes that follow. */
  bytes: number;
  /** Their SHA-256: a damaged state would make llama.cpp end the process. */
  sha256: string;
}

const MAGIC = "RYSSTAT1";

const digest = async (bytes: Uint8Array<ArrayBuffer>) =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();

/** Prefixes llama.cpp's bytes with what the state belongs to. */
export async function packState(
  bytes: Uint8Array,
  identity: StateIdentity,
): Promise<Uint8Array<ArrayBuffer>> {
  const own = new Uint8Array(bytes);
  const head: Head = { ...identity, bytes: own.length, sha256: await digest(own) };
  const json = new TextEncoder().encode(JSON.stringify(head));
  const state = new Uint8Array(12 + json.length + own.length);
  new TextEncoder().encodeInto(MAGIC, state);
  new DataView(state.buffer).setUint32(8, json.length, true);
  state.set(json, 12);
  state.set(own, 12 + json.length);
  return state;
}

/**
 * Returns llama.cpp's bytes of a state that belongs to this context.
 *
 * @throws {EngineError} If it is not a state, is damaged, or belongs to another model, plan or cache type.
 */
export async function unpackState(
  state: Uint8Array,
  identity: StateIdentity,
): Promise<Uint8Array<ArrayBuffer>> {
  if (!(state instanceof Uint8Array)) throw new TypeError("The state must be a Uint8Array");
  const refuse = (why: string): never => {
    throw new EngineError(`Cannot load the state: ${why}`);
  };
  const text = new TextDecoder();
  if (state.length < 12 || text.decode(state.subarray(0, 8)) !== MAGIC) {
    return refuse(`its ${state.length} bytes do not come from saveState()`);
  }
  const n = new DataView(state.buffer, state.byteOffset).getUint32(8, true);
  let head: Head;
  try {
    head = JSON.parse(text.decode(state.subarray(12, 12 + n)));
  } catch {
    return refuse("its header is damaged");
  }
  if (typeof head !== "object" || head === null) return refuse("its header is damaged");
  const bytes = new Uint8Array(state.subarray(12 + n));
  if (bytes.length !== head.bytes) {
    return refuse(`it is truncated: ${bytes.length} bytes of ${head.bytes}`);
  }
  if (await digest(bytes) !== head.sha256) return refuse("its bytes are damaged");
  if (head.model !== identity.model) {
    return refuse(`it belongs to model ${head.model}, this is ${identity.model}`);
  }
  if (head.planHash !== identity.planHash) {
    return refuse(`it belongs to plan "${head.plan}", this context runs "${identity.plan}"`);
  }
  const types = (of: StateIdentity) => `${of.cacheTypeK}/${of.cacheTypeV}`;
  if (types(head) !== types(identity)) {
    return refuse(`its cache types are ${types(head)}, this context's ${types(identity)}`);
  }
  return bytes;
}
