// The host's side of the bridge: src/engine/host.ts puts an object with these two methods at Module.rys.
addToLibrary({
  rys_js_event: (req, kind, aux, data, n) => {
    Module["rys"].event(req, kind, aux, Number(data), Number(n));
  },
  rys_js_read: (ctx, result, id, dst, n, offset) => {
    Module["rys"].read(ctx, result, id, Number(dst), n, offset);
  },
});
