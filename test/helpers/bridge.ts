import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Inbox } from './inbox.ts';
import { mainProgram } from './programs.ts';
import type { RpcMessage } from './raw-http.ts';

interface BridgeProgram {
  command: string;
  args: string[];
  env: Record<string, string>;
}

/** Starts `switchboard stdio`. With its own home, `config` replaces the configuration there; null means none. */
export function bridgeProgram(
  url: string,
  home?: string,
  config: string | null = home === undefined ? null : join(home, 'mcp.json'),
): BridgeProgram {
  const own = config === null ? [] : ['--config', config];
  return {
    command: process.execPath,
    args: [mainProgram, 'stdio', '--url', url, ...own],
    env: { ...process.env, ...(home && { SWITCHBOARD_HOME: home }) } as Record<string, string>,
  };
}

/** `switchboard stdio`, driven line by line. */
export interface RawBridge extends AsyncDisposable {
  received: Inbox<RpcMessage>;
  say(...messages: object[]): void;
  sayLine(text: string): void;
  answerTo(id: unknown): Promise<RpcMessage>;
  interrupt(): void;
  /** Closes stdin, and returns all output until the exit. */
  end(): Promise<RpcMessage[]>;
}

export function startBridge({ command, args, env }: BridgeProgram): RawBridge {
  const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const received = new Inbox<RpcMessage>();
  const lines = createInterface({ input: child.stdout });
  const closed = once(lines, 'close');
  lines.on('line', (line) => received.add(JSON.parse(line) as RpcMessage));
  return {
    received,
    say(...messages) {
      const texts = messages.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
      child.stdin.write(texts.join(''));
    },
    sayLine(text) {
      child.stdin.write(`${text}\n`);
    },
    answerTo: (id) => received.first((message) => message.id === id && message.method === undefined),
    interrupt: () => void child.kill('SIGTERM'),
    async end() {
      child.stdin.end();
      await closed;
      return received.items;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** For `say`. */
export function modernRequest(id: unknown, method: string, params: object = {}): object {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'lines', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  return { id, method, params: { ...params, _meta: meta } };
}

/** Opens a legacy session with `say`. */
export function legacyOpening(id: unknown): object[] {
  const clientInfo = { name: 'lines', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  return [{ id, method: 'initialize', params }, { method: 'notifications/initialized' }];
}
