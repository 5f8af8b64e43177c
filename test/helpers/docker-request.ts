import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

class DockerError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Calls an engine without any code under test. Sends JSON or a tar stream; returns JSON, or a list of JSON lines. */
export async function dockerRequest<Answer = unknown>(
  socketPath: string,
  method: string,
  path: string,
  body?: object,
): Promise<Answer> {
  const text = (await readAll(await ask(socketPath, method, path, body))).toString();
  if (text.trim() === '') return undefined as Answer;
  const documents = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
  return (documents.length === 1 ? documents[0] : documents) as Answer;
}

/** For responses that are not JSON. */
export async function dockerBytes(
  socketPath: string,
  method: string,
  path: string,
  body?: object,
): Promise<Buffer> {
  return readAll(await ask(socketPath, method, path, body));
}

/** Events from now on, or since a time in seconds. Leaving the loop ends the request. */
export async function* dockerEvents<Event = { Type: string; Action: string; Actor: { ID: string } }>(
  socketPath: string,
  filters: Record<string, string[]>,
  since?: number,
): AsyncGenerator<Event> {
  const query = new URLSearchParams({ filters: JSON.stringify(filters) });
  if (since !== undefined) query.set('since', String(since));
  const response = await ask(socketPath, 'GET', `/events?${query}`);
  try {
    for await (const line of createInterface({ input: response })) yield JSON.parse(line) as Event;
  } finally {
    response.destroy();
  }
}

async function ask(
  socketPath: string,
  method: string,
  path: string,
  body?: object,
): Promise<IncomingMessage> {
  const type = body instanceof Readable ? 'application/x-tar' : 'application/json';
  const headers = body === undefined ? {} : { 'content-type': type };
  // An engine that rejects a request early drops the connection, but its response still arrives.
  const outgoing = request({ socketPath, method, path, headers, agent: false });
  const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>;
  if (body instanceof Readable) await Promise.race([pipeline(body, outgoing), answered]);
  else outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = await answered;
  const status = response.statusCode!;
  if (status < 400) return response;
  throw new DockerError(
    status,
    `${method} ${path}: ${status} ${(await readAll(response)).toString().trim()}`,
  );
}

async function readAll(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
