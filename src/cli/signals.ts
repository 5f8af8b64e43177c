/** One Ctrl-C may arrive several times: from the terminal, and passed on by whoever started us. */
const SAME_WISH_MS = 500;

/**
 * Calls `stop` on the first signal to end, and `stopNow` on one that comes while that takes long. A closed terminal is
 * never in a hurry: several tell of it. Gives the way to listen no longer.
 */
export function onStopSignals(stop: () => void, stopNow: () => void): () => void {
  let since: number | undefined;
  const begin = () => {
    since = performance.now();
    stop();
  };
  const interrupted = () => {
    if (since === undefined) begin();
    else if (performance.now() - since >= SAME_WISH_MS) stopNow();
  };
  const hungUp = () => {
    if (since === undefined) begin();
  };
  const handlers = { SIGINT: interrupted, SIGTERM: interrupted, SIGHUP: hungUp };
  for (const [signal, handler] of Object.entries(handlers)) process.on(signal, handler);
  return () => {
    for (const [signal, handler] of Object.entries(handlers)) process.off(signal, handler);
  };
}
