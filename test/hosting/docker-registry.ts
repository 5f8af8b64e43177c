import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { type TarEntry, tarOf } from '../helpers/tar.ts';

/** An image registry on loopback, where the engine requires no certificate. */
export interface Registry extends AsyncDisposable {
  /** The prefix of its image names, such as 127.0.0.1:5000. */
  host: string;
  /** Settles when the engine has requested a layer that is never sent. */
  stalled: Promise<unknown>;
}

/** Serves the image `files` with these files, and `stalling` with the same files but a layer that never arrives. */
export async function startRegistry(entries: TarEntry[], config: object): Promise<Registry> {
  const tar = await buffer(tarOf(entries));
  const layer = gzipSync(tar);
  const description = Buffer.from(
    JSON.stringify({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: [digestOf(tar)] },
    }),
  );
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: describe(description, 'application/vnd.docker.container.image.v1+json'),
      layers: [describe(layer, 'application/vnd.docker.image.rootfs.diff.tar.gzip')],
    }),
  );
  const contents = new Map([description, layer].map((bytes) => [digestOf(bytes), bytes]));
  const { promise: stalled, resolve: stall } = Promise.withResolvers<void>();

  const server = createServer(({ url = '', method }, response) => {
    const [, image = '', kind, reference = ''] = /^\/v2\/(\w+)\/(manifests|blobs)\/(.+)$/.exec(url) ?? [];
    if (url === '/v2/') return void response.end('{}');
    if (!['files', 'stalling'].includes(image)) return refuse(response, 'NAME_UNKNOWN');
    if (kind === 'manifests') {
      if (!['latest', digestOf(manifest)].includes(reference)) return refuse(response, 'MANIFEST_UNKNOWN');
      response.setHeader('content-type', MANIFEST);
      response.setHeader('docker-content-digest', digestOf(manifest));
      response.setHeader('content-length', manifest.length);
      return void response.end(method === 'HEAD' ? undefined : manifest);
    }
    const bytes = contents.get(reference);
    if (bytes === undefined) return refuse(response, 'BLOB_UNKNOWN');
    if (image === 'stalling' && bytes === layer) return stall();
    response.end(bytes);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    stalled,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';

function refuse(response: ServerResponse, code: string): void {
  response.writeHead(404, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ errors: [{ code, message: code.toLowerCase().replace('_', ' ') }] }));
}

function describe(bytes: Buffer, mediaType: string) {
  return { mediaType, size: bytes.length, digest: digestOf(bytes) };
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
