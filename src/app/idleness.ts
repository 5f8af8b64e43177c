/** Tells when there has been no client for so long. */
export function watchIdleness(
  clients: { readonly count: number },
  exitWhenIdleMs: number | undefined,
  idle: () => void,
): NodeJS.Timeout | undefined {
  if (exitWhenIdleMs === undefined) return undefined;
  let idleSince = Date.now();
  const check = () => {
    if (clients.count > 0) idleSince = Date.now();
    else if (Date.now() - idleSince >= exitWhenIdleMs) idle();
  };
  const timer = setInterval(check, Math.min(1_000, exitWhenIdleMs));
  timer.unref();
  return timer;
}
