import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export type ProxyName = 'nginx' | 'caddy';

interface ProxyPlace {
  /** For its files. */
  folder: string;
  /** The ports for https and for http. */
  port: number;
  plainPort: number;
  /** Of Switchboard. */
  target: number;
  cert: string;
  key: string;
}

const root = join(import.meta.dirname, '../..');

/** Runs the example of deploy/ with other names, ports and certificates. */
export async function startTlsProxy(
  name: ProxyName,
  command: string,
  place: ProxyPlace,
): Promise<AsyncDisposable> {
  const words = name === 'nginx' ? nginxWords(place) : caddyWords(place);
  const { folder } = place;
  const child = spawn(command, words, {
    env: { PATH: process.env.PATH, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  const exited = once(child, 'exit');
  await untilListening(child, place.port, () => `${name} did not start: ${said}`);
  return {
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/** The example is a file of conf.d; the rest is what Debian's nginx.conf sets, in our folder. */
function nginxWords({ folder, port, plainPort, target, cert, key }: ProxyPlace): string[] {
  const example = readFileSync(join(root, 'deploy/nginx/switchboard.conf'), 'utf8');
  const site = replaced(example, [
    [/127\.0\.0\.1:7400/g, `127.0.0.1:${target}`],
    [/listen 443 ssl;/g, `listen 127.0.0.1:${port} ssl;`],
    [/listen 80;/g, `listen 127.0.0.1:${plainPort};`],
    [/listen \[::\]:443 ssl;/g, hasIPv6() ? `listen [::1]:${port} ssl;` : ''],
    [/listen \[::\]:80;/g, hasIPv6() ? `listen [::1]:${plainPort};` : ''],
    [/server_name sb\.example/g, 'server_name localhost'],
    [/(ssl_certificate) \S+;/g, `$1 ${cert};`],
    [/(ssl_certificate_key) \S+;/g, `$1 ${key};`],
  ]);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const main = [
    'daemon off;',
    `pid ${folder}/nginx.pid;`,
    // Its workers use our folder, which only we can enter.
    ...(process.getuid?.() === 0 ? ['user root;'] : []),
    'events { worker_connections 768; }',
    'http {',
    'access_log off;',
    'gzip on;',
    ...temporary.map((what) => `${what}_temp_path ${folder}/${what};`),
    `include ${folder}/switchboard.conf;`,
    '}',
  ];
  writeFileSync(join(folder, 'switchboard.conf'), site);
  writeFileSync(join(folder, 'nginx.conf'), main.join('\n'));
  return ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')];
}

/** The example is imported; the options say only where to listen. */
function caddyWords({ folder, port, plainPort, target, cert, key }: ProxyPlace): string[] {
  const example = readFileSync(join(root, 'deploy/caddy/Caddyfile'), 'utf8');
  const sites = replaced(example, [
    [/127\.0\.0\.1:7400/g, `127.0.0.1:${target}`],
    [/# tls \S+ \S+/g, `tls ${cert} ${key}`],
    [/^sb\.example \{/gm, 'localhost {'],
    [/^http:\/\/sb\.example \{/gm, 'http://localhost {'],
  ]);
  const options = ['admin off', `http_port ${plainPort}`, `https_port ${port}`, 'default_bind 127.0.0.1'];
  writeFileSync(join(folder, 'sites'), sites);
  writeFileSync(join(folder, 'Caddyfile'), `{\n${options.join('\n')}\n}\nimport ${folder}/sites\n`);
  return ['run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')];
}

/** Each pattern must occur, so that the example cannot change without the test. */
function replaced(example: string, changes: [RegExp, string][]): string {
  return changes.reduce((text, [pattern, value]) => {
    if (text.search(pattern) === -1) throw new Error(`the example does not contain ${pattern}`);
    return text.replace(pattern, value);
  }, example);
}

function hasIPv6(): boolean {
  return Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));
}

async function untilListening(child: ChildProcess, port: number, why: () => string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(why());
    const socket = connect(port, '127.0.0.1');
    const isListening = await new Promise<boolean>((resolve) => {
      socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
    });
    socket.destroy();
    if (isListening) return;
    await delay(20);
  }
}
