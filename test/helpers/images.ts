import { execFileSync } from 'node:child_process';
import { basename, dirname, join } from 'node:path';
import { build } from 'esbuild';
import { dockerRequest, type Engine } from './docker.ts';
import { onlyOnce } from './only-once.ts';
import { type TarEntry, tarOf } from './tar.ts';

const base = 'switchboard-test/node:latest';
const fixtures = join(import.meta.dirname, '../fixtures');

/** An image that runs a fixture, with a user `node` (1000) and world-writable /data and /tmp; built once per engine. */
export async function serverImage({ socketPath }: Engine, fixture: string): Promise<string> {
  const folder = dirname(socketPath);
  await onlyOnce(folder, 'node-image', () => importBase(socketPath));
  await onlyOnce(folder, `image-${fixture}`, () => addServer(socketPath, fixture));
  return referenceOf(fixture);
}

function referenceOf(fixture: string): string {
  return `switchboard-test/${fixture}:latest`;
}

async function importBase(socketPath: string): Promise<void> {
  const query = new URLSearchParams({ fromSrc: '-', ...repositoryAndTag(base) });
  const entries: TarEntry[] = [
    ...foldersAbove(['/usr/bin/node', '/etc/passwd', '/srv/server.mjs', ...libraries()]),
    { path: 'tmp/', mode: 0o1777 },
    { path: 'data/', mode: 0o1777 },
    { path: 'etc/passwd', mode: 0o644, text: passwd },
    { path: 'usr/bin/node', mode: 0o755, file: process.execPath },
    ...libraries().map((path) => ({ path: path.slice(1), mode: 0o755, file: path })),
  ];
  const said = await dockerRequest(socketPath, 'POST', `/images/create?${query}`, tarOf(entries));
  // A failure comes in a response that starts as a success.
  const failure = [said].flat().find((line) => (line as { error?: string }).error !== undefined);
  if (failure !== undefined) throw new Error(`The image cannot be made: ${JSON.stringify(failure)}`);
}

const passwd = 'root:x:0:0:root:/:/sbin/nologin\nnode:x:1000:1000:node:/data:/sbin/nologin\n';

/** Adds a layer above the base. */
async function addServer(socketPath: string, fixture: string): Promise<void> {
  const program = `${fixture}.mjs`;
  const { Id: id } = await dockerRequest<{ Id: string }>(socketPath, 'POST', '/containers/create', {
    Image: base,
    Cmd: ['node'],
  });
  const server = tarOf([{ path: program, mode: 0o644, text: await bundle(fixture) }]);
  await dockerRequest(socketPath, 'PUT', `/containers/${id}/archive?path=/srv`, server);
  const query = new URLSearchParams({ container: id, ...repositoryAndTag(referenceOf(fixture)) });
  await dockerRequest(socketPath, 'POST', `/commit?${query}`, {
    Entrypoint: ['/usr/bin/node', `/srv/${program}`],
    Cmd: [],
    WorkingDir: '/srv',
    Env: ['PATH=/usr/bin'],
  });
  await dockerRequest(socketPath, 'DELETE', `/containers/${id}`);
}

/** One file, because the image has no packages. */
async function bundle(fixture: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(fixtures, `${fixture}.ts`)],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    banner: {
      // CommonJS packages call it.
      js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
    },
  });
  return outputFiles[0]!.text;
}

/** The shared libraries of node, where its loader looks for them. */
function libraries(): string[] {
  const linked = execFileSync('ldd', [process.execPath], { encoding: 'utf8' });
  return [...linked.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path!);
}

function foldersAbove(paths: string[]): TarEntry[] {
  const folders = new Set<string>();
  for (const path of paths) {
    for (let folder = dirname(path); basename(folder) !== ''; folder = dirname(folder)) folders.add(folder);
  }
  return [...folders].toSorted().map((folder) => ({ path: `${folder.slice(1)}/`, mode: 0o755 }));
}

function repositoryAndTag(reference: string): { repo: string; tag: string } {
  const [repo = '', tag = ''] = reference.split(':');
  return { repo, tag };
}
