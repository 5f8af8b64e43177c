import { createApi } from '../../src/api/api.ts';
import { serveHttp } from './http-exchange.ts';
import { MemoryBackend } from './memory-backend.ts';
import { exchange } from './raw-http.ts';

/** An answer of the API as tests look at it. */
export interface ApiAnswer {
  status: number;
  headers: Record<string, unknown>;
  /** The body as data; undefined where there is none. */
  body: Record<string, unknown> | undefined;
  /** What an error says. */
  error: { code: string; message: string; details: { problems?: { path: string; message: string }[] } };
}

/** The API over real connections, with everything behind it in memory. */
export async function serveApi(onFault?: (thrown: unknown) => void) {
  const backend = new MemoryBackend();
  const api = createApi(backend, onFault);
  const peer = await serveHttp(api.handle);
  const url = (path: string) => `${peer.url.origin}${path.startsWith('/api') ? path : `/api/v1${path}`}`;
  /** `POST /projects`, with a body that is sent as JSON. */
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
  return { backend, api, peer, url, ask };
}
