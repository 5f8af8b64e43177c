import { setTimeout as delay } from 'node:timers/promises';
import type { Attachment } from '../../channels/hosted.ts';

/** A server over HTTP has so long to listen, and is looked for so often. */
const SERVE_MS = 30_000;
const SERVE_EVERY_MS = 100;

/**
 * What to speak with a server through, once somebody answers there. One that has only just started does not listen yet. It
 * may also end meanwhile, and serve elsewhere, so `attach` is asked every time.
 */
export async function servedAttachment(
  attach: () => Promise<Attachment>,
  pathOf: () => string,
): Promise<Attachment> {
  for (const until = performance.now() + SERVE_MS; ; await delay(SERVE_EVERY_MS, undefined, { ref: false })) {
    const attachment = await attach();
    if (attachment.kind === 'stdio') return attachment;
    const address = new URL(attachment.url);
    // Only the path: as an address relative to this one, "//host" and "/\host" would name another host.
    address.pathname = pathOf();
    const url = address.href;
    // Loaded here, because few need it, and node:http takes much memory.
    const { isServing } = await import('./serving.ts');
    if (performance.now() > until || (await isServing(url))) return { ...attachment, url };
  }
}
