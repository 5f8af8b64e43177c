import { once } from 'node:events';
import { createServer, request as openRequest } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Forwards HTTP requests. With `required`, it rejects those without that header; `added` are set on each request. */
export class HttpProxy implements AsyncDisposable {
  target: string;
  readonly requests: { method: string; header: string | undefined }[] = [];
  private readonly server = createServer((request, response) => {
    const { method = 'GET', headers, url = '/' } = request;
    const [name, value] = this.required ?? [];
    const header = name === undefined ? undefined : headers[name]?.toString();
    this.requests.push({ method, header });
    if (header !== value) {
      response.writeHead(401).end(`${name} is missing or wrong`);
      return;
    }
    const all = { ...headers, ...this.added };
    const onward = openRequest(
      new URL(url, this.target),
      { method, headers: all, agent: false },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        response.flushHeaders();
        answer.on('error', () => response.destroy());
        answer.pipe(response);
      },
    );
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  });
  private readonly required: [name: string, value: string] | undefined;

  private readonly added: Record<string, string>;

  private constructor(
    target: string,
    required: [name: string, value: string] | undefined,
    added: Record<string, string>,
  ) {
    this.target = target;
    this.required = required;
    this.added = added;
  }

  static async start(
    target: string,
    required?: [name: string, value: string],
    added: Record<string, string> = {},
  ): Promise<HttpProxy> {
    const proxy = new HttpProxy(target, required, added);
    proxy.server.listen(0, '127.0.0.1');
    await once(proxy.server, 'listening');
    return proxy;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return this.origin + new URL(this.target).pathname;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, 'close');
  }
}
