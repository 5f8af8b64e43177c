import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { createApi } from '../../src/api/api.ts';
import type { Switchboard } from '../../src/app/switchboard.ts';
import { startApp } from '../../src/app.ts';
import { localUser } from '../../src/identity/principal.ts';
import { freshDatabase } from './database.ts';
import { serveHttp } from './http-exchange.ts';
import { removeHome } from './postgres.ts';
import { exchange } from './raw-http.ts';

interface ApiAnswer {
  status: number;
  headers: Record<string, unknown>;
  /** Parsed; undefined if empty. */
  body: Record<string, unknown> | undefined;
  error: { code: string; message: string; details: { problems?: { path: string; message: string }[] } };
}

/** The program in this process, with its own database, shared by the tests of a file. */
export async function startForTests(config: object = {}) {
  const database = await freshDatabase();
  const home = await mkdtemp(join(tmpdir(), 'switchboard-home-'));
  const configPath = join(home, 'mcp.json');
  // No API test reaches an engine.
  const hosting = { engine: join(home, 'no-engine.sock') };
  await writeFile(configPath, JSON.stringify({ mcpServers: {}, switchboard: { hosting, ...config } }));
  const ignore = () => {};
  const app = (await startApp(
    {
      ...{ configPath, host: '127.0.0.1', port: 0, home },
      database: { mode: 'server', url: database.url, secretKey: undefined },
    },
    {
      ...{ progressed: ignore, listening: ignore, serverChanged: ignore, configApplied: ignore },
      ...{ warned: ignore, idle: ignore, waiting: ignore },
    },
  )) as Switchboard;
  afterAll(async () => {
    await app.stop(0);
    await database[Symbol.asyncDispose]();
    await removeHome(home);
  });
  const { services } = app;
  let count = 0;
  return {
    services,
    /** Closed at the end of the test. */
    serve: (onFault?: (thrown: unknown) => void) => serveApi(services, onFault),
    /** Unique within the test file. */
    newName: (prefix = 'web') => `${prefix}-${++count}`,
  };
}

type Services = Switchboard['services'];

async function serveApi(services: Services, onFault?: (thrown: unknown) => void) {
  const api = createApi(services, onFault);
  const sender = { principal: localUser(), address: undefined };
  const peer = await serveHttp((request, response) => api.handle(request, response, sender));
  const url = (path: string) => `${peer.url.origin}${path.startsWith('/api') ? path : `/api/v1${path}`}`;
  const ask = async (
    what: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<ApiAnswer> => {
    const [method = '', path = ''] = what.split(' ');
    const type = body === undefined && method !== 'POST' ? {} : { 'content-type': 'application/json' };
    const answer = await exchange(url(path), { method, headers: { ...type, ...headers }, body });
    const parsed = answer.json as Record<string, unknown> | undefined;
    return {
      status: answer.status,
      headers: answer.headers,
      body: parsed,
      error: parsed?.error as ApiAnswer['error'],
    };
  };
  const newProject = async (name: string) => {
    const { body } = await ask('POST /projects', { name });
    return {
      id: String(body!.id),
      ask: (what: string, ...more: [body?: unknown, headers?: Record<string, string>]) =>
        ask(what.replace(' ', ` /projects/${name}`), ...more),
    };
  };
  return { api, peer, url, ask, newProject };
}
