import { once } from 'node:events';
import { createServer, request as openRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Passes every HTTP request on to one server, which can be exchanged for another between two requests. */
export class Balancer implements AsyncDisposable {
  target: string;
  private readonly server: Server;

  private constructor(target: string) {
    this.target = target;
    this.server = createServer((request, response) => {
      const { method = 'GET', headers } = request;
      const onward = openRequest(this.target, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        response.flushHeaders();
        answer.on('error', () => response.destroy());
        answer.pipe(response);
      });
      onward.on('error', () => response.destroy());
      response.on('close', () => onward.destroy());
      request.pipe(onward);
    });
  }

  static async start(target: string): Promise<Balancer> {
    const balancer = new Balancer(target);
    balancer.server.listen(0, '127.0.0.1');
    await once(balancer.server, 'listening');
    return balancer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/mcp`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, 'close');
  }
}
