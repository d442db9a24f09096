import html from "./page.html" with { type: "text" };
import css from "./page.css" with { type: "text" };
import answer from "./answer.js" with { type: "text" };
import api from "./api.js" with { type: "text" };
import layerBar from "./layer_bar.js" with { type: "text" };
import main from "./page.js" with { type: "text" };
import planPicker from "./plan_picker.js" with { type: "text" };
import plans from "./plans.js" with { type: "text" };
import sse from "../../sse.js" with { type: "text" };

/** The page's files: plain HTML, CSS and JavaScript, which the browser takes as they are. */
const FILES = new Map<string, [type: string, text: string]>([
  ["/", ["text/html; charset=utf-8", html]],
  ["/rys/page.css", ["text/css; charset=utf-8", css]],
  ...Object.entries({
    answer,
    api,
    layer_bar: layerBar,
    page: main,
    plan_picker: planPicker,
    plans,
    sse,
  }).map(([name, text]): [string, [string, string]] => [
    `/rys/${name}.js`,
    // What the page shares with the server lies elsewhere in the package; a browser finds all files in one folder.
    ["text/javascript; charset=utf-8", text.replace(/(?<=from ")(?:\.\.\/)+/g, "./")],
  ]),
]);

/** Only the page's own files run or are shown; it talks to its own server and stands in nobody's frame. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/**
 * Answers requests for the web page and its files.
 *
 * @param request Any request.
 * @returns The file for a GET or HEAD of `/` or of one of the page's files under `/rys/`, nothing for all else.
 */
export function page(request: Request): Response | undefined {
  if (request.method !== "GET" && request.method !== "HEAD") return undefined;
  const file = FILES.get(new URL(request.url).pathname);
  if (!file) return undefined;
  const [type, text] = file;
  return new Response(request.method === "HEAD" ? null : text, {
    headers: {
      "Content-Type": type,
      "Cache-Control": "no-cache",
      "Content-Security-Policy": POLICY,
      "Cross-Origin-Opener-Policy": "same-origin",
      "Referrer-Policy": "no-referrer",
      "X-Content-Type-Options": "nosniff",
    },
  });
}
