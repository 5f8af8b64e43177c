import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { listen, openPool, post } from '../../../test/helpers/http-exchange.ts';
import { type Identity, makeIdentity } from '../../../test/helpers/identity.ts';

function serve(identity: Identity): Server {
  const server = createServer({ ...identity, ALPNProtocols: ['h2', 'http/1.1'] }, (request, response) => {
    const { servername, alpnProtocol } = request.socket as TLSSocket;
    response.end(JSON.stringify({ servername, alpnProtocol, host: request.headers.host }));
  });
  server.on('tlsClientError', () => {});
  return server;
}

function trust(identity: Identity): void {
  const before = getCACertificates('default');
  setDefaultCACertificates([...before, identity.cert]);
  onTestFinished(() => setDefaultCACertificates(before));
}

const identity = makeIdentity();

describe.skipIf(identity === undefined)('a TLS server (the test certificate needs openssl)', () => {
  it('is offered HTTP/1.1 under its name, on a connection that is reused', async () => {
    trust(identity!);
    const { url, sockets } = await listen(serve(identity!), 'https');
    const peer = { url: new URL(url.href.replace('127.0.0.1', 'localhost')), sockets };
    const pool = openPool(peer);
    for (let count = 0; count < 3; count++) {
      const { status, body } = await post(pool, peer, Buffer.alloc(200_000)).outcome;
      expect(status).toBe(200);
      expect(JSON.parse(body.toString())).toEqual({
        servername: 'localhost',
        alpnProtocol: 'http/1.1',
        host: peer.url.host,
      });
    }
    expect(sockets.items.length).toBe(1);
  });

  it('may send large responses', async () => {
    trust(identity!);
    const sent = randomBytes(3_000_000);
    const server = createServer({ ...identity }, (_request, response) => response.end(sent));
    const peer = await listen(server, 'https');
    const { body } = await post(openPool(peer), peer).outcome;
    expect(body.equals(sent)).toBe(true);
  });

  it('may be identified by its address only', async () => {
    trust(identity!);
    const peer = await listen(serve(identity!), 'https');
    const { body } = await post(openPool(peer), peer).outcome;
    expect(JSON.parse(body.toString())).toMatchObject({ servername: false, host: peer.url.host });
  });

  it('receives nothing if its certificate is not trusted', async () => {
    const peer = await listen(serve(identity!), 'https');
    const { error, neverSent } = await post(openPool(peer), peer).outcome;
    expect((error as NodeJS.ErrnoException).code).toBe('DEPTH_ZERO_SELF_SIGNED_CERT');
    expect(neverSent).toBe(true);
  });
});
