/** What is told to so many is told again. Servers choose the names in it, and can go on to choose others for ever. */
const MAX_TOLD = 1_000;

/** Passes on each message once, however often it comes. */
export function onceEach(tell: (message: string) => void): (message: string) => void {
  const told = new Set<string>();
  return (message) => {
    if (told.has(message)) return;
    if (told.size >= MAX_TOLD) told.clear();
    told.add(message);
    tell(message);
  };
}
