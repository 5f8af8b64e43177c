import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openExchange } from '../helpers/raw-http.ts';
import { checkAnswer, type Exchange } from './answers.ts';
import { type AnyRequest, anyRequest } from './requests.ts';
import { openScene } from './scene.ts';

describe('the API of the real program', () => {
  it('responds to any input, and keeps running', async () => {
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
  const isLines = response.headers['content-type'] === 'application/jsonl';
  for (const part of isLines ? text.split('\n') : [text])
    if (part !== '') expect(JSON.parse(part)).toBeTypeOf('object');
  return { method, path, status: response.statusCode!, text };
}
