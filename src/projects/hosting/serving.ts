import { request } from 'node:http';

const ANSWER_MS = 2_000;

/**
 * Whether anybody answers there at all. That a port takes connections says nothing: an engine does so in the place of a
 * server that does not listen yet, and lets go of them.
 */
export function isServing(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    // Nobody does anything for that one.
    const asked = request(url, { method: 'OPTIONS', agent: false, timeout: ANSWER_MS });
    asked.on('response', (response) => {
      response.destroy();
      resolve(true);
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => resolve(false));
    asked.on('close', () => resolve(false));
    asked.end();
  });
}
