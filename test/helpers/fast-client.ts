import { Pool } from 'undici';

/** Chooses its own ids and sends many requests at once, on kept connections. */
export class FastClient implements AsyncDisposable {
  private readonly pool: Pool;
  private readonly path: string;
  private session = '';

  private constructor(url: string) {
    const { origin, pathname } = new URL(url);
    this.pool = new Pool(origin, { connections: 64 });
    this.path = pathname;
  }

  static async connect(url: string): Promise<FastClient> {
    const client = new FastClient(url);
    const { headers } = await client.post({
      id: 0,
      method: 'initialize',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'fast', version: '1.0.0' },
      },
    });
    client.session = String(headers['mcp-session-id']);
    await client.post({ method: 'notifications/initialized' });
    return client;
  }

  async call(id: number | string, name: string, toolArguments: object): Promise<unknown> {
    const params = { name, arguments: toolArguments };
    return JSON.parse((await this.post({ id, method: 'tools/call', params })).text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.pool.destroy();
  }

  private async post(message: object) {
    const { headers, body } = await this.pool.request({
      path: this.path,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(this.session === '' ? {} : { 'mcp-session-id': this.session }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    });
    return { headers, text: await body.text() };
  }
}
