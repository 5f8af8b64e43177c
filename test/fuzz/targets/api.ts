import { errorTable } from '../../../src/errors.ts';
import { parsed, SECRET, shown, wrongIn } from '../answers.ts';
import { ApiGenerator, type Document } from '../generators/api.ts';
import { cut } from '../generators/chunkings.ts';
import { caseRandom } from '../generators/random.ts';
import { Wire, type WireAnswer } from '../wire.ts';
import { type Ground, inLanes } from './target.ts';

const LANES = 6;

export interface PreparedApi {
  generator: ApiGenerator;
  cleanUp(): Promise<void>;
}

/** Reads the OpenAPI document, and plants a secret that must never appear. */
export async function prepareApi({ port }: Ground): Promise<PreparedApi> {
  const base = `http://127.0.0.1:${port}/api/v1`;
  const ask = async (method: string, path: string, body?: object): Promise<unknown> => {
    const answer = await fetch(`${base}${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: HTTP ${answer.status} ${await answer.text()}`);
    return answer.status === 204 ? undefined : answer.json();
  };
  await ask('PUT', '/projects/default/secrets/PLANTED', { value: SECRET });
  const generator = new ApiGenerator((await ask('GET', '/openapi.json')) as Document);
  const isStored = ({ source }: { source: string }) => source === 'api';
  return {
    generator,
    async cleanUp() {
      const { projects } = (await ask('GET', '/projects')) as { projects: { name: string }[] };
      for (const { name } of projects) if (name !== 'default') await ask('DELETE', `/projects/${name}`);
      const { servers: hosted } = (await ask('GET', '/mcp/servers')) as { servers: { id: string }[] };
      for (const { id } of hosted) await ask('DELETE', `/mcp/servers/${id}`);
      const { products } = (await ask('GET', '/projects/default/products')) as {
        products: { name: string }[];
      };
      for (const { name } of products) await ask('DELETE', `/projects/default/products/${name}`);
      const { servers } = (await ask('GET', '/projects/default/servers')) as {
        servers: { name: string; source: string }[];
      };
      for (const server of servers) {
        if (isStored(server))
          await ask('DELETE', `/projects/default/servers/${encodeURIComponent(server.name)}`);
      }
    },
  };
}

/** Sends requests to the API that match its document, or nearly. */
export async function fuzzApi(ground: Ground, { generator }: PreparedApi): Promise<void> {
  const { cases, findings, tell, underWay, done, port } = ground;
  const wires = Array.from({ length: LANES }, () => new Wire(port));
  await inLanes(LANES, cases.of('api'), async (lane, index) => {
    const random = caseRandom(cases.seed, index);
    const made = generator.generate(random, index, `127.0.0.1:${port}`);
    underWay.set(`api ${lane}`, index);
    tell?.(`${made.what}: ${shown(made.bytes, 2_000)}`);
    const exchange = await wires[lane]!.exchange({
      pieces: cut(random, made.bytes),
      isHead: [made.what.startsWith('HEAD')],
      ...{ isEndless: true, leaves: false },
    });
    underWay.delete(`api ${lane}`);
    const [answer] = exchange.answers;
    tell?.(`→ HTTP ${answer?.status} ${shown(answer?.body ?? Buffer.alloc(0), 2_000)}`);
    const wrong =
      wrongIn(exchange, new Set(), [undefined], 'api') ?? (answer && wrongForm(answer, made.statuses));
    if (wrong !== undefined) findings.add(`api, ${made.operationId}: ${wrong}; ${shown(made.bytes)}`, index);
    done(index, String(answer?.status ?? 'closed'));
  });
  for (const wire of wires) wire.drop();
}

/** A documented success, or an error of the table with its status. */
function wrongForm(
  { status, headers, body }: WireAnswer,
  statuses: readonly number[] | undefined,
): string | undefined {
  if (status < 400)
    return (statuses?.includes(status) ?? true)
      ? undefined
      : `a status ${status} that is not in the document`;
  if (body.length === 0 || headers['content-type'] === undefined) return undefined;
  const { error } = (parsed(body.toString()) ?? {}) as { error?: { code?: unknown; message?: unknown } };
  if (typeof error?.message !== 'string') return `an error of another form; ${shown(body)}`;
  const isKnown = typeof error.code === 'string' && error.code in errorTable;
  // Invalid HTTP is rejected before it reaches the API.
  return isKnown || typeof error.code === 'number'
    ? undefined
    : `an error that is not in the table; ${shown(body)}`;
}
