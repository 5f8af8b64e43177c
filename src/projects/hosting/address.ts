import { setTimeout as delay } from 'node:timers/promises';
import type { Attachment } from '../../channels/hosted.ts';

const LISTEN_MS = 30_000;
const PROBE_EVERY_MS = 100;
const PROBE_TIMEOUT_MS = 2_000;

/**
 * Resolves when the server answers HTTP requests. Calls `attach` for each probe, because the server may restart and get another
 * port.
 */
export async function attachWhenListening(
  attach: () => Promise<Attachment>,
  path: () => string,
): Promise<Attachment> {
  const deadline = performance.now() + LISTEN_MS;
  for (;;) {
    const attachment = await attach();
    if (attachment.kind === 'stdio') return attachment;
    const address = new URL(attachment.url);
    // Set as the path only: resolved as a relative URL, "//host" and "/\host" would name another host.
    address.pathname = path();
    const url = address.href;
    if (performance.now() > deadline || (await answersHttp(url))) return { ...attachment, url };
    await delay(PROBE_EVERY_MS, undefined, { ref: false });
  }
}

/** An open port proves nothing: a container engine accepts connections for a server that does not listen yet. */
export async function answersHttp(url: string): Promise<boolean> {
  // Loaded on first use, because most processes never need it and it takes much memory.
  const { request } = await import('node:http');
  return new Promise((resolve) => {
    // OPTIONS has no side effects.
    const probe = request(url, { method: 'OPTIONS', agent: false, timeout: PROBE_TIMEOUT_MS });
    probe.on('response', (response) => {
      response.destroy();
      resolve(true);
    });
    probe.on('timeout', () => probe.destroy());
    probe.on('error', () => resolve(false));
    probe.on('close', () => resolve(false));
    probe.end();
  });
}
