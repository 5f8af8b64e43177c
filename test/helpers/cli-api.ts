import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { onTestFinished, vi } from 'vitest';
import { run } from '../../src/cli/run.ts';
import { serveHttp } from './http-exchange.ts';

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
  requests: string[];
}

/** JSON, an empty body (null), a sequence (a list), or a function. */
export type ApiAnswers = Record<string, object | null | object[] | ((response: ServerResponse) => void)>;

/** Runs a command in this process against an API with these responses; all other paths return 404. */
export async function runWith(answers: ApiAnswers, ...words: string[]): Promise<Outcome> {
  const requests: string[] = [];
  const peer = await serveHttp(async (request, response) => {
    const path = (request.url ?? '').replace('/api/v1', '');
    const body = await text(request);
    const match = request.headers['if-match'];
    requests.push(
      `${request.method} ${path}${match === undefined ? '' : ` if ${match}`}${body === '' ? '' : ` ${body}`}`,
    );
    const given = answers[`${request.method} ${path}`];
    // The last one repeats.
    const answer = Array.isArray(given) ? (given.length > 1 ? given.shift() : given[0]) : given;
    if (answer === null) {
      response.writeHead(204).end();
    } else if (typeof answer === 'function') {
      answer(response);
    } else {
      const missing = { error: { code: 'not_found', message: `There is nothing at ${path}.`, details: {} } };
      const status = answer === undefined ? 404 : 200;
      const content = JSON.stringify(answer ?? missing);
      response.writeHead(status, { 'content-type': 'application/json' }).end(content);
    }
  });
  const printed = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    const spy = vi.spyOn(process[stream], 'write').mockImplementation((chunk) => {
      printed[stream] += String(chunk);
      return true;
    });
    onTestFinished(() => spy.mockRestore());
  }
  const behind = words.indexOf('--');
  const place = behind === -1 ? words.length : behind;
  const code = await run(words.toSpliced(place, 0, '--url', peer.url.origin));
  return { code, ...printed, requests };
}
