import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEverything } from '../helpers/switchboard.ts';
import type { Place } from './servers.ts';

/** The resources that the servers use: a folder, a web page, and `everything` over HTTP. */
export async function openPlace(): Promise<Place & AsyncDisposable> {
  const stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-real-'));
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));
  writeFileSync(join(folder, 'hello.js'), 'console.log(greeting);\n');
  writeFileSync(join(folder, 'eslint.config.js'), 'module.exports = [{ rules: { "no-undef": "error" } }];\n');
  mkdirSync(join(folder, 'papers'));
  const git = (...words: string[]) => execFileSync('git', words, { cwd: folder, stdio: 'ignore' });
  git('init', '--initial-branch=main');
  git('add', 'hello.js');
  git('-c', 'user.name=Test', '-c', 'user.email=test@localhost', 'commit', '--message', 'Say hello');

  const site = createServer((request, response) => {
    response.statusCode = request.url === '/page' ? 200 : 404;
    response.setHeader('content-type', 'text/plain');
    response.end('hello from this machine');
  }).listen(0, '127.0.0.1');
  await once(site, 'listening');
  stack.defer(async () => {
    site.closeAllConnections();
    site.close();
    await once(site, 'close');
  });
  const [http, sse] = await Promise.all([startEverything('streamableHttp'), startEverything('sse')]);
  stack.use(http);
  stack.use(sse);
  return {
    ...{ folder, page: `http://127.0.0.1:${(site.address() as AddressInfo).port}/page` },
    ...{ http: http.url, sse: sse.url },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
