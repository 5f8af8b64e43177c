import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { requirePart } from '../helpers/parts.ts';
import { openExchange } from '../helpers/raw-http.ts';
import { type AnyRequest, anyRequest } from './requests.ts';
import { innards, openScene } from './scene.ts';
import { type Exchange, runSchemathesis } from './schemathesis.ts';

/** Whatever was asked, it is answered with nothing that is not for clients. */
function checkAnswer({ method, path, status, text }: Exchange): void {
  const what = `${method} ${path}: ${status}, ${text.slice(0, 1_000)}`;
  expect(status, what).toBeLessThan(500);
  expect(innards.exec(text)?.[0], what).toBe(undefined);
}

describe('the API of the real program', () => {
  it('answers schemathesis as its document says', async (test) => {
    const { command } = requirePart('schemathesis', test);
    await using scene = await openScene();
    const { code, said, exchanges } = await runSchemathesis(
      command,
      `${scene.url}/openapi.json`,
      scene.folder,
    );
    expect(code, said).toBe(0);
    exchanges.forEach(checkAnswer);
    expect(exchanges.length).toBeGreaterThan(500);
    // What is made up proves little unless it comes through.
    const done = new Set(exchanges.filter(({ status }) => status < 300).map(kindOf));
    expect(done.size, [...done].join('\n')).toBeGreaterThan(18);
    await scene.checkHealth();
  });

  it('answers whatever is sent, and goes on', async () => {
    await using scene = await openScene();
    const statuses = new Set<number>();
    await fc.assert(
      fc.asyncProperty(fc.array(anyRequest, { minLength: 1, maxLength: 8 }), async (requests) => {
        const answers = await Promise.all(requests.map((request) => send(scene.url, request)));
        for (const answer of answers) {
          checkAnswer(answer);
          statuses.add(answer.status);
        }
      }),
      { numRuns: 300 },
    );
    for (const status of [200, 201, 204, 400, 404, 405, 409, 415]) {
      expect(statuses.has(status), `${status} in ${[...statuses]}`).toBe(true);
    }
    await scene.checkHealth();
  });
});

async function send(url: string, { method, path, headers, body }: AnyRequest): Promise<Exchange> {
  const response = await openExchange(`${url}${path}`, { method, headers, body });
  const text = (await buffer(response)).toString();
  if (text !== '') expect(JSON.parse(text)).toBeTypeOf('object');
  return { method, path, status: response.statusCode!, text };
}

/** Which operation it was, with * for every name. */
function kindOf({ method, path }: Exchange): string {
  const steps = path.split('?')[0]!.split('/');
  return `${method} ${steps.map((step, index) => (index % 2 === 0 && index > 0 ? '*' : step)).join('/')}`;
}
