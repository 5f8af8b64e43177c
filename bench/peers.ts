/** Starts the other gateways from npm in front of a stdio server. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Unavailable } from './starting.ts';
import type { PeerName } from './variants.ts';

export interface StdioServer {
  command: string;
  args: string[];
}

/** The program and its arguments. Its configuration is written to the folder. */
export function peerCommand(name: PeerName, server: StdioServer, port: number, folder: string): string[] {
  const words = [server.command, ...server.args];
  switch (name) {
    case 'supergateway': {
      const shellCommand = words.map((word) => `'${word}'`).join(' ');
      const flags = ['--outputTransport', 'streamableHttp', '--stateful', '--port', String(port)];
      return [programOf(name), '--stdio', shellCommand, ...flags];
    }
    case 'mcp-proxy': {
      const flags = ['--port', String(port), '--host', '127.0.0.1', '--server', 'stream'];
      return [programOf(name), ...flags, '--', ...words];
    }
    case 'mcp-hub': {
      const config = join(folder, `mcp-hub-${port}.json`);
      writeFileSync(config, JSON.stringify({ mcpServers: { echo: server } }));
      writeMarketplaceCache(folder);
      return [programOf(name), '--port', String(port), '--config', config];
    }
  }
}

export function peerEnvironment(folder: string): Record<string, string> {
  return { HOME: folder, XDG_DATA_HOME: folder, XDG_STATE_HOME: folder, XDG_CONFIG_HOME: folder };
}

/** mcp-hub downloads its marketplace at every start, unless it did so within the last hour. */
function writeMarketplaceCache(parent: string): void {
  const folder = join(parent, 'mcp-hub', 'cache');
  mkdirSync(folder, { recursive: true });
  const registry = {
    version: '0',
    generatedAt: 0,
    totalServers: 1,
    servers: [{ id: 'none', name: 'none' }],
  };
  const cache = { registry, lastFetchedAt: Date.now(), serverDocumentation: {} };
  writeFileSync(join(folder, 'registry.json'), JSON.stringify(cache));
}

function programOf(name: PeerName): string {
  const folder = fileURLToPath(new URL(`./peers/node_modules/${name}`, import.meta.url));
  if (!existsSync(folder)) throw new Unavailable('not installed: run `npm ci` in bench/peers');
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    bin: Record<string, string>;
  };
  return join(folder, manifest.bin[name] ?? '');
}
