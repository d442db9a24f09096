import type { MetadataReader } from "./read_header.ts";
import type { GgufHeader } from "./types.ts";

/** GLM-5.2's layers that select keys themselves, where its file does not say: the first two, then every fourth. */
const GLM_SELECTS = (il: number) => il < 2 || (il < 78 && (il - 2) % 4 === 0);
/** From this context on a GLM is a 5.2. */
const GLM_5_2_CONTEXT = 1_048_576;

/**
 * Which layers select keys with an indexer of their own; the others of such a model use an earlier layer's selection.
 *
 * @returns A predicate over the model's layers; undefined if the architecture has no indexer.
 */
export function indexerLayers(
  header: Pick<GgufHeader, "architecture" | "contextLength">,
  read: MetadataReader,
): ((il: number) => boolean) | undefined {
  const { architecture, contextLength } = header;
  const count = (key: string) => read.count(`${architecture}.${key}`) ?? 0;
  switch (architecture) {
    case "deepseek32":
      return () => true;
    case "minimax-m3": {
      const dense = count("leading_dense_block_count");
      return (il) => il >= dense;
    }
    case "hy_v4":
      if (count("attention.indexer.top_k") === 0) return undefined;
      break;
    case "glm-dsa":
    case "dots3note":
      break;
    default:
      return undefined;
  }
  const key = `${architecture}.attention.indexer.types`;
  const listed = read.list(key);
  if (listed !== undefined) return (il) => (listed[il] ?? 0) !== 0;
  const said = read.count(key);
  if (said !== undefined) return () => said !== 0;
  if (architecture !== "glm-dsa") return () => false;
  return (il) => contextLength < GLM_5_2_CONTEXT || GLM_SELECTS(il);
}
