import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { freePort } from '../../test/helpers/free-port.ts';
import { serveHttp } from '../../test/helpers/http-exchange.ts';
import { callApi, projectPath } from './api.ts';
import { exitCodeOf, UnreachableError } from './exit.ts';

type Respond = (request: IncomingMessage, response: ServerResponse) => void;

async function serve(respond: Respond): Promise<string> {
  return (await serveHttp(respond)).url.origin;
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function failure(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    () => new Error('it did not fail'),
    (error: Error) => error,
  );
}

describe('callApi', () => {
  it('sends the method, the path, the body and the version', async () => {
    const url = await serve(async (request, response) => {
      const { method, url: path, headers } = request;
      const body = JSON.parse(await text(request));
      json(response, 200, {
        method,
        path,
        body,
        version: headers['if-match'],
        type: headers['content-type'],
      });
    });
    const path = projectPath('a b', 'servers', 'x/y');
    const query = { replace: 'true', nothing: undefined };
    expect(await callApi(url, 'PATCH', path, { body: { enabled: true }, query, version: 3 })).toEqual({
      method: 'PATCH',
      path: '/api/v1/projects/a%20b/servers/x%2Fy?replace=true',
      body: { enabled: true },
      version: '"3"',
      type: 'application/json',
    });
  });

  it('accepts a response without a body', async () => {
    const url = await serve((_request, response) => void response.writeHead(204).end());
    expect(await callApi(url, 'DELETE', '/projects/x')).toBe(undefined);
  });

  it("shows the API's error with a line for each problem", async () => {
    const problems = [
      { path: 'config.url', message: 'must be a URL' },
      { path: '', message: 'is strange' },
    ];
    const url = await serve((_request, response) =>
      json(response, 400, { error: { code: 'invalid_input', message: 'all of it', details: { problems } } }),
    );
    const error = await failure(callApi(url, 'POST', '/projects'));
    expect(error).toMatchObject({ code: 'invalid_input', data: { problems } });
    expect(error.message.split('\n').map((line) => line.trim())).toEqual([
      'config.url: must be a URL',
      'is strange',
    ]);
    expect(exitCodeOf(error)).toBe(2);
  });

  it.each([
    [
      404,
      { error: { code: 'unknown_project', message: 'There is no project "x".', details: {} } },
      'unknown_project',
      'There is no project "x".',
    ],
    [500, { error: { code: 'of_the_future', message: 'Hm.' } }, 'internal', 'Hm.'],
    [502, {}, 'internal', 'HTTP 502'],
  ])('fails on HTTP %d', async (status, body, code, message) => {
    const url = await serve((_request, response) => json(response, status, body));
    const error = await failure(callApi(url, 'GET', '/projects'));
    expect(error).toMatchObject({ code, message });
    expect(exitCodeOf(error)).toBe(1);
  });

  it('reports that Switchboard is not running', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const error = await failure(callApi(url, 'POST', '/projects', { body: {} }));
    expect(error).toBeInstanceOf(UnreachableError);
    expect(error.message).toBe(`There is no Switchboard at ${url}. Start one with: switchboard up`);
    expect(exitCodeOf(error)).toBe(3);
  });

  it('reports that another program responds', async () => {
    const url = await serve((_request, response) => void response.writeHead(200).end('<html>'));
    const error = await failure(callApi(url, 'GET', '/projects'));
    expect(error).toBeInstanceOf(UnreachableError);
    expect(error.message).toBe(`The program at ${url} is not a Switchboard.`);
  });

  it('times out', async () => {
    const url = await serve(() => {});
    expect((await failure(callApi(url, 'GET', '/projects', { timeoutMs: 20 }))).message).toBe(
      'no response within 20 ms',
    );
  });

  it('does not claim that nothing happened if the connection breaks', async () => {
    const url = await serve((request) => void request.socket.destroy());
    const error = await failure(callApi(url, 'POST', '/projects', { body: {} }));
    expect(error).not.toBeInstanceOf(UnreachableError);
    expect(exitCodeOf(error)).toBe(1);
  });
});
