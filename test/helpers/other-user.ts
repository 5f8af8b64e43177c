import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { RawRequest } from './raw-http.ts';

/** `nobody` exists on every machine and owns nothing. */
const OTHER_USER = 65_534;

/** Skips a test without the rights to become a second user; in CI it fails instead. */
export function requireOtherUser(test: { skip(note: string): never }): void {
  if (process.platform === 'linux' && process.geteuid?.() === 0) return;
  const { CI } = process.env;
  if (CI !== undefined && CI !== '' && CI !== 'false')
    throw new Error('CI needs another user: run it as root');
  test.skip('needs another user: run it as root');
}

/** That user cannot read our files, so the program starts first and then drops its rights. */
export function startAsOther(code: string, ...words: string[]): ChildProcess {
  const drop = `process.setgroups([]); process.setgid(${OTHER_USER}); process.setuid(${OTHER_USER});`;
  return spawn(process.execPath, ['-e', `${drop}\n${code}`, ...words], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
}

interface OtherAnswer {
  status: number;
  headers: Record<string, string>;
  text: string;
}

export async function exchangeAsOther(url: string, request: RawRequest): Promise<OtherAnswer> {
  const child = startAsOther(
    `const [url, { method, headers, body }] = [process.argv[1], JSON.parse(process.argv[2])];
    const request = require('node:http').request(url, { method, headers }, (response) => {
      let text = '';
      response.on('data', (chunk) => { text += chunk; });
      response.on('end', () => {
        console.log(JSON.stringify({ status: response.statusCode, headers: response.headers, text }));
      });
    });
    request.end(body === undefined ? undefined : JSON.stringify(body));`,
    url,
    JSON.stringify({ method: 'POST', ...request }),
  );
  const [output] = await Promise.all([text(child.stdout!), once(child, 'exit')]);
  return JSON.parse(output) as OtherAnswer;
}
