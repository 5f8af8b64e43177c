/** A plain node:http MCP server with prebuilt results: the "direct" variant that every gateway is compared with. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { eraNamed } from '../eras.ts';
import { answerHead, createAnswers, errorJson, type Request } from './answers.ts';

const { values } = parseArgs({
  options: {
    era: { type: 'string', default: 'legacy' },
    tools: { type: 'string', default: '3' },
    'list-file': { type: 'string' },
  },
});
const era = eraNamed(values.era);
const listFile = values['list-file'];
const answerTo = createAnswers(
  era,
  Number(values.tools),
  listFile === undefined ? undefined : readFileSync(listFile, 'utf8'),
);

const server = createServer((request, response) => {
  if (request.method !== 'POST') {
    answerWithoutMessage(request.method, response);
    return;
  }
  let body: Buffer | undefined;
  request.on('data', (bytes: Buffer) => {
    body = body === undefined ? bytes : Buffer.concat([body, bytes]);
  });
  request.on('end', () => answer(JSON.parse(String(body)) as Request, response));
});

/** GET and DELETE of sessions, which the modern era does not have. */
function answerWithoutMessage(method: string | undefined, response: ServerResponse): void {
  if (era === 'modern') {
    response.writeHead(405).end();
  } else if (method === 'GET') {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    response.flushHeaders();
  } else {
    response.writeHead(200).end();
  }
}

function answer(request: Request, response: ServerResponse): void {
  if (request.id === undefined) {
    response.writeHead(202).end();
    return;
  }
  const headers: Record<string, string | number> = { 'content-type': 'application/json' };
  if (request.method === 'initialize' && era === 'legacy') headers['mcp-session-id'] = randomUUID();
  const result = answerTo(request);
  const head = answerHead(request.id);
  if (result === undefined || typeof result === 'string') {
    const text = result === undefined ? errorJson(request) : `${head}${result}}`;
    headers['content-length'] = text.length;
    response.writeHead(result === undefined && era === 'modern' ? 400 : 200, headers).end(text, 'latin1');
    return;
  }
  headers['content-length'] = head.length + result.length + 1;
  response.writeHead(200, headers);
  response.cork();
  response.write(head, 'latin1');
  response.write(result);
  response.end('}', 'latin1');
}

server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(
    `${JSON.stringify({ event: 'listening', url: `http://127.0.0.1:${port}/mcp`, pid: process.pid })}\n`,
  );
});
process.on('SIGTERM', () => process.exit(0));
