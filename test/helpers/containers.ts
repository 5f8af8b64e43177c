import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { createInterface, type Interface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { dockerBytes, dockerRequest, type Engine } from './docker.ts';

/** Does not start the container. */
export async function createContainer(
  { socketPath }: Engine,
  description: object,
): Promise<{ id: string; start(): Promise<unknown>; remove(): Promise<unknown> }> {
  const { Id: id } = await dockerRequest<{ Id: string }>(
    socketPath,
    'POST',
    '/containers/create',
    description,
  );
  return {
    id,
    start: () => dockerRequest(socketPath, 'POST', `/containers/${id}/start`),
    remove: () => dockerRequest(socketPath, 'DELETE', `/containers/${id}?force=1&v=1`),
  };
}

/** Runs a program in a running container; returns its output and exit code. */
export async function runIn(
  { socketPath }: Engine,
  id: string,
  command: string[],
): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  const { Id: run } = await dockerRequest<{ Id: string }>(socketPath, 'POST', `/containers/${id}/exec`, {
    Cmd: command,
    AttachStdout: true,
    AttachStderr: true,
  });
  const wrote = { stdout: '', stderr: '' };
  const frames = await dockerBytes(socketPath, 'POST', `/exec/${run}/start`, { Detach: false });
  takeFrames(frames, (stream, content) => {
    wrote[stream] += content.toString();
  });
  const { ExitCode } = await dockerRequest<{ ExitCode: number }>(socketPath, 'GET', `/exec/${run}/json`);
  return { exitCode: ExitCode, ...wrote };
}

export interface Attached extends Disposable {
  stdin: Socket;
  stdout: Interface;
  stderr: Interface;
}

/** Works before the container starts or while it runs. */
export async function attachTo({ socketPath }: Engine, id: string): Promise<Attached> {
  const outgoing = request({
    socketPath,
    method: 'POST',
    path: `/containers/${id}/attach?stream=1&stdin=1&stdout=1&stderr=1`,
    headers: { connection: 'Upgrade', upgrade: 'tcp' },
  });
  outgoing.end();
  const [, socket, first] = (await once(outgoing, 'upgrade')) as [IncomingMessage, Socket, Buffer];
  const streams = { stdout: new PassThrough(), stderr: new PassThrough() };
  let unread = first;
  const take = (chunk: Buffer) => {
    unread = takeFrames(Buffer.concat([unread, chunk]), (stream, content) => streams[stream].write(content));
  };
  socket.on('data', take);
  socket.on('error', () => {});
  socket.on('close', () => {
    streams.stdout.end();
    streams.stderr.end();
  });
  return {
    stdin: socket,
    stdout: createInterface({ input: streams.stdout }),
    stderr: createInterface({ input: streams.stderr }),
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

/** Docker prefixes each frame with eight bytes: its stream and length. Returns the incomplete rest. */
function takeFrames(bytes: Buffer, taken: (stream: 'stdout' | 'stderr', content: Buffer) => void): Buffer {
  let unread = bytes;
  while (unread.length >= 8 && unread.length >= 8 + unread.readUInt32BE(4)) {
    const end = 8 + unread.readUInt32BE(4);
    taken(unread[0] === 2 ? 'stderr' : 'stdout', unread.subarray(8, end));
    unread = unread.subarray(end);
  }
  return unread;
}
