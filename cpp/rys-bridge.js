// The host's side of the bridge: whoever makes the instance puts an object with these methods at Module.rys.
addToLibrary({
  rys_js_event: (req, kind, aux, data, n) => {
    Module["rys"].event(req, kind, aux, Number(data), Number(n));
  },
  rys_js_read: (ctx, result, id, dst, n, offset) => {
    Module["rys"].read(ctx, result, id, Number(dst), n, offset);
  },
  rys_js_gpu: (job, words, n, waits) => {
    Module["rys"].gpu(job, Number(words), Number(n), waits);
  },
});
